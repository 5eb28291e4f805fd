//! Tool calls written as text: grammars that servers leak, and (in a later release) the text protocols.
