//! The optional fields of serialized types: those present in a value, and those that it leaves out. Derived
//! code names a field that it skips, so a newly added field is found without being listed anywhere.
//!
//! Types that are flattened into another are not covered: serde does not report their skipped fields.

use serde::Serialize;
use serde::ser::{
    Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    Serializer,
};
use std::collections::BTreeSet;
use std::fmt::Error;

/// Paths of fields, as `step_end.usage.input_tokens`. Items of a list share one, variants with a tag do not.
#[derive(Default)]
pub struct OptionalFields {
    stands: BTreeSet<String>,
    left_out: BTreeSet<String>,
}

impl OptionalFields {
    /// Takes in what another value has.
    pub fn read(&mut self, value: &impl Serialize) {
        let path = String::new();
        value.serialize(FieldReader { fields: self, path }).expect("it serializes to JSON");
    }

    /// Fields that some value has.
    pub fn standing(&self) -> &BTreeSet<String> {
        &self.stands
    }

    /// Fields that values left out and none has.
    pub fn missing(&self) -> Vec<&str> {
        self.left_out.difference(&self.stands).map(String::as_str).collect()
    }
}

/// A value as it was read: a field whose value is nothing is left out like one that is skipped.
enum Seen {
    Nothing,
    Word(String),
    Other,
}

struct FieldReader<'a> {
    fields: &'a mut OptionalFields,
    path: String,
}

impl FieldReader<'_> {
    fn inside<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<Seen, Error> {
        let path = join(&self.path, name);
        value.serialize(FieldReader { fields: &mut *self.fields, path })
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        let seen = self.inside(name, value)?;
        let path = join(&self.path, name);
        match seen {
            Seen::Nothing => self.fields.left_out.insert(path),
            // The tag of an enum comes first and is a word; variants have their own fields.
            Seen::Word(variant) if matches!(name, "type" | "kind") => {
                self.path = if self.path.is_empty() { variant } else { format!("{} {variant}", self.path) };
                false
            }
            _ => self.fields.stands.insert(path),
        };
        Ok(())
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

macro_rules! other {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Result<Seen, Error> { Ok(Seen::Other) })*
    };
}

impl Serializer for FieldReader<'_> {
    type Ok = Seen;
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Impossible<Seen, Error>;
    type SerializeTupleVariant = Impossible<Seen, Error>;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    other!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    other!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32);
    other!(serialize_f64: f64, serialize_char: char, serialize_bytes: &[u8], serialize_unit_struct: &'static str);

    fn serialize_str(self, word: &str) -> Result<Seen, Error> {
        Ok(Seen::Word(word.to_owned()))
    }

    fn serialize_none(self) -> Result<Seen, Error> {
        Ok(Seen::Nothing)
    }

    fn serialize_unit(self) -> Result<Seen, Error> {
        Ok(Seen::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Seen, Error> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<Seen, Error> {
        Ok(Seen::Other)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Seen, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Seen, Error> {
        self.inside(variant, value).map(|_| Seen::Other)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Error> {
        Err(Error)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(Error)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        self.path = join(&self.path, variant);
        Ok(self)
    }
}

impl SerializeStruct for FieldReader<'_> {
    type Ok = Seen;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.field(name, value)
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), Error> {
        self.fields.left_out.insert(join(&self.path, name));
        Ok(())
    }

    fn end(self) -> Result<Seen, Error> {
        Ok(Seen::Other)
    }
}

impl SerializeStructVariant for FieldReader<'_> {
    type Ok = Seen;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.field(name, value)
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), Error> {
        SerializeStruct::skip_field(self, name)
    }

    fn end(self) -> Result<Seen, Error> {
        Ok(Seen::Other)
    }
}

impl SerializeSeq for FieldReader<'_> {
    type Ok = Seen;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        let path = format!("{}[]", self.path);
        item.serialize(FieldReader { fields: &mut *self.fields, path }).map(|_| ())
    }

    fn end(self) -> Result<Seen, Error> {
        Ok(Seen::Other)
    }
}

impl SerializeTuple for FieldReader<'_> {
    type Ok = Seen;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        SerializeSeq::serialize_element(self, item)
    }

    fn end(self) -> Result<Seen, Error> {
        Ok(Seen::Other)
    }
}

/// A type with a flattened part, or JSON that is not ours.
impl SerializeMap for FieldReader<'_> {
    type Ok = Seen;
    type Error = Error;

    fn serialize_entry<K: Serialize + ?Sized, T: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &T,
    ) -> Result<(), Error> {
        match self.inside("", key)? {
            Seen::Word(name) => self.field(&name, value),
            _ => Err(Error),
        }
    }

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Error> {
        Err(Error)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Error> {
        Err(Error)
    }

    fn end(self) -> Result<Seen, Error> {
        Ok(Seen::Other)
    }
}
