//! `[server]` and `[store]` from outside: text, environment and flags in, settings or one precise error out.

use throughline::config::{
    AppSettings, AuthMode, ConfigError, ConfigFile, ConfigFlags, DurabilityMode, EnvVars, ServerLimits,
    ServerSettings, StoreBackend, StoreSettings, TlsSection, ToolRendering, resolve,
};

fn settings(text: &str, env: &[(&str, &str)], flags: &ConfigFlags) -> Result<AppSettings, ConfigError> {
    let environment: EnvVars =
        env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    resolve(Some(ConfigFile::parse("etc/throughline.toml", text)?), &environment, flags)
}

fn of(text: &str) -> AppSettings {
    settings(text, &[], &ConfigFlags::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The error of a file, as a person sees it.
fn check_error(text: &str, expected: &str) {
    let error = settings(text, &[], &ConfigFlags::default()).unwrap_err().to_string();
    assert_eq!(error, expected, "\n--- got\n{error}\n--- for\n{text}");
}

#[test]
fn default_server_is_local_with_keys_and_a_data_folder() {
    let settings = of("");
    assert_eq!(settings.server, ServerSettings::default());
    assert_eq!(settings.store, StoreSettings::default());
    assert!(settings.server.listen.ip().is_loopback());
    assert_eq!(settings.server.auth, AuthMode::Keys);
    assert_eq!(settings.store.backend, StoreBackend::DataFolder);
}

#[test]
fn full_configuration_file_is_read() {
    let settings = of(r#"
        [server]
        listen = "0.0.0.0:443"
        hosts = ["Chat.Example.com", "10.0.0.5:443"]
        origins = ["https://Page.example.com:443", "http://localhost:5173/"]
        tls = { cert = "cert.pem", key = "/etc/key.pem" }
        render = "owui_event"
        listed_renders = ["details"]
        public_url = "https://Chat.example.com/"
        drain_ms = 5
        [server.limits]
        body_bytes_max = 1024
        [store]
        url = "data/turns.db"
        retention_days = 30
        merge = "off"
        keep_raw = "on"
        durability = "everything"
    "#);
    let server = ServerSettings {
        listen: "0.0.0.0:443".parse().unwrap(),
        hosts: vec!["chat.example.com".into(), "10.0.0.5:443".into()],
        origins: vec!["https://page.example.com".into(), "http://localhost:5173".into()],
        auth: AuthMode::Keys,
        tls: Some(TlsSection { cert: "etc/cert.pem".into(), key: "/etc/key.pem".into() }),
        render: ToolRendering::OwuiEvent,
        listed_renders: vec![ToolRendering::Details],
        public_url: Some("https://chat.example.com".into()),
        drain_ms: 5,
        limits: ServerLimits { body_bytes_max: 1024, ..ServerLimits::default() },
        trusted_proxy: None,
        oidc: None,
    };
    assert_eq!(settings.server, server);
    let store = StoreSettings {
        backend: StoreBackend::File("etc/data/turns.db".into()),
        retention_days: Some(30),
        merge: false,
        keep_raw: true,
        durability: DurabilityMode::Everything,
    };
    assert_eq!(settings.store, store);
}

#[test]
fn flags_override_environment_which_overrides_the_file() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n[store]\nurl = \"of-file.db\"";
    let environment = [("THROUGHLINE_LISTEN", "127.0.0.1:2"), ("THROUGHLINE_STORE", "of-environment.db")];
    let flags = ConfigFlags {
        listen: Some("localhost:3".into()),
        store: Some("of-flag.db".into()),
        ..ConfigFlags::default()
    };
    let none = ConfigFlags::default();
    for (env, flags, port, path) in [
        (&environment[..0], &none, 1, "etc/of-file.db"),
        (&[("THROUGHLINE_LISTEN", " ")][..], &none, 1, "etc/of-file.db"),
        (&environment[..], &none, 2, "of-environment.db"),
        (&environment[..], &flags, 3, "of-flag.db"),
    ] {
        let settings = settings(file, env, flags).unwrap();
        assert_eq!(
            (settings.server.listen.port(), settings.store.backend),
            (port, StoreBackend::File(path.into()))
        );
    }
    let error = settings("", &[("THROUGHLINE_LISTEN", "8787")], &none).unwrap_err().to_string();
    assert!(
        error.contains("`8787` is not a valid listen address")
            && error.contains("variable THROUGHLINE_LISTEN"),
        "{error}"
    );
    let flags = ConfigFlags { store: Some("mysql://x/y".into()), ..none };
    let error = settings("", &[], &flags).unwrap_err().to_string();
    assert!(error.contains("no store for `mysql:`") && error.contains("--store"), "{error}");
}

#[test]
fn store_url_selects_a_file_or_postgres() {
    for (url, expected) in [
        ("postgres://me@db/throughline", StoreBackend::Postgres("postgres://me@db/throughline".into())),
        ("postgresql://me@db/t", StoreBackend::Postgres("postgresql://me@db/t".into())),
        ("sqlite:/srv/t.db", StoreBackend::File("/srv/t.db".into())),
        ("sqlite:///srv/t.db", StoreBackend::File("/srv/t.db".into())),
        ("t.db", StoreBackend::File("etc/t.db".into())),
        ("$DB", StoreBackend::Postgres("postgres://secret@db/t".into())),
    ] {
        let text = format!("[store]\nurl = \"{url}\"");
        let settings = settings(&text, &[("DB", "postgres://secret@db/t")], &ConfigFlags::default()).unwrap();
        assert_eq!(settings.store.backend, expected, "{url}");
    }
}

#[test]
fn errors_show_the_position_and_valid_values() {
    check_error(
        "[server]\nlissen = \"127.0.0.1:1\"",
        "unknown field `lissen`\n --> etc/throughline.toml:2:1\n  |\n2 | lissen = \"127.0.0.1:1\"\n  | ^^^^^^\n  = did you mean \
         `listen`? valid here: `listen`, `hosts`, `origins`, `auth`, `tls`, `trusted_proxy`, `oidc`, `render`, \
         `listed_renders`, `public_url`, `drain_ms`, `limits`",
    );
    check_error(
        "[server]\nlisten = \"0.0.0.0:8787\"\nauth = \"off\"",
        "without API keys, anyone who can reach 0.0.0.0:8787 could use every tool and model\n --> \
         etc/throughline.toml:3:8\n  |\n3 | auth = \"off\"\n  |        ^^^^^\n  = set auth = \"keys\" (the \
          default), or listen = \"127.0.0.1:8787\"",
    );
    check_error(
        "[server.limits]\nbody_bytes_max = 1\nstreams_per_key_max = 0",
        "the limit `streams_per_key_max` must not be 0\n --> etc/throughline.toml:3:1\n  |\n3 | \
         streams_per_key_max = 0\n  | ^^^^^^^^^^^^^^^^^^^",
    );
    for (text, message, place) in [
        ("[server]\nlisten = \"8787\"", "`8787` is not a valid listen address", "2:10"),
        ("[server]\nauth = \"none\"", "unknown variant `none`", "2:8"),
        ("[server]\nrender = \"html\"", "unknown variant `html`", "2:10"),
        ("[server]\nhosts = [\"a.b\", \"*\"]", "`*` is not a valid host name", "2:17"),
        ("[server]\nhosts = [\"https://a.b\"]", "`https://a.b` is not a valid host name", "2:10"),
        ("[server]\nhosts = [\"\"]", "`` is not a valid host name", "2:10"),
        ("[server]\norigins = [\"*\"]", "`*` is not a valid origin", "2:12"),
        ("[server]\norigins = [\"null\"]", "`null` is not a valid origin", "2:12"),
        ("[server]\norigins = [\"https://a.b/page\"]", "is not a valid origin", "2:12"),
        ("[server]\norigins = [\"https://me@a.b\"]", "is not a valid origin", "2:12"),
        ("[server]\npublic_url = \"https://a.b/page\"", "is not a valid origin", "2:14"),
        ("[server]\ntls = { cert = \"c.pem\" }", "missing field `key`", "2:7"),
        ("[server.limits]\nbody_max = 1", "unknown field `body_max`", "2:1"),
        ("[store]\nurl = \"mysql://a/b\"", "there is no store for `mysql:`", "2:7"),
        ("[store]\nurl = \"\"", "there is no store for `:`", "2:7"),
        ("[store]\nurl = \"$NOWHERE\"", "the environment variable NOWHERE is not set", "2:7"),
        ("[store]\nretention_days = 0", "0 days would delete every conversation", "2:18"),
        ("[store]\ndurability = \"none\"", "unknown variant `none`", "2:14"),
    ] {
        let error = settings(text, &[], &ConfigFlags::default()).unwrap_err().to_string();
        assert!(error.contains(message), "{text}\n{error}");
        assert!(error.contains(&format!("throughline.toml:{place}\n")), "{text}\n{error}");
    }
}

#[test]
fn listen_override_without_keys_must_be_loopback() {
    let text = "[server]\nauth = \"off\"";
    let flags = ConfigFlags { listen: Some("192.0.2.1:80".into()), ..ConfigFlags::default() };
    let error = settings(text, &[], &flags).unwrap_err().to_string();
    assert!(error.contains("anyone who can reach 192.0.2.1:80"), "{error}");
    assert_eq!(of(text).server.auth, AuthMode::Off);
    let env = [("THROUGHLINE_LISTEN", "[::]:80")];
    assert!(settings(text, &env, &ConfigFlags::default()).is_err());
}

#[test]
fn invalid_database_url_is_not_shown_in_the_error() {
    let text = "[store]\nurl = \"$DB\"";
    let env = [("DB", "postgres://me:hunter2@db:port/t")];
    let error = settings(text, &env, &ConfigFlags::default()).unwrap_err().to_string();
    assert!(error.contains("invalid database URL") && !error.contains("hunter2"), "{error}");
}
