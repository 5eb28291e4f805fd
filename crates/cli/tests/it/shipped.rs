//! The program as it is shipped. `cargo xtask test` builds it alone, with the features of `throughline-cli` and no others,
//! and names it to these tests; a build of the workspace has more features than users get.

#![cfg(unix)]

use crate::support;
use crate::support::serving::{Serving, command_of};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that is tested.
fn shipped() -> PathBuf {
    match std::env::var_os("THROUGHLINE_SHIPPED") {
        Some(path) => path.into(),
        None => support::throughline().0.get_program().into(),
    }
}

/// A folder with a certificate for this name, and a configuration that uses it.
fn with_certificate(name: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("cert.pem", &made.cert.pem());
    write("key.pem", &made.signing_key.serialize_pem());
    let settings =
        format!("[server]\nhosts = [\"{name}\"]\ntls = {{ cert = \"cert.pem\", key = \"key.pem\" }}\n");
    write("throughline.toml", &(settings + "[agents.default]\nmodel = \"demo\"\n"));
    (folder, made.cert.pem())
}

fn serve(folder: &Path) -> Serving {
    let mut command = command_of(&shipped(), folder);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    Serving::spawn(command)
}

fn output(folder: &Path, words: &[&str]) -> (bool, String) {
    let output = command_of(&shipped(), folder).args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test]
async fn shipped_program_serves_only_tls_when_configured() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (folder, certificate) = with_certificate("chat.example.com");
    let serving = serve(folder.path());
    let root = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    let address = serving.address().parse().unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([root])
        .resolve("chat.example.com", address)
        .no_proxy()
        .build()
        .unwrap();
    let url = format!("https://chat.example.com:{}/healthz", address.port());
    let answer = client.get(&url).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    assert!(client.get(url.replace("https", "http")).send().await.is_err(), "nothing is served without TLS");
}

#[test]
fn commands_accept_the_servers_own_certificate() {
    let (folder, _) = with_certificate("chat.example.com");
    let serving = serve(folder.path());
    let (ok, said) = output(folder.path(), &["keys", "create", "--name", "laptop"]);
    assert!(ok && said.contains("tl_"), "{said}");
    let (ok, said) = output(folder.path(), &["keys", "list"]);
    assert!(ok && said.contains("laptop"), "{said}");
    let (_, said) = output(folder.path(), &["doctor"]);
    assert!(said.contains(&format!("https://{}", serving.address())), "{said}");
    // Another certificate than the one that the note names is not accepted.
    let (other, _) = with_certificate("chat.example.com");
    std::fs::copy(other.path().join("cert.pem"), folder.path().join("copied.pem")).unwrap();
    let note = folder.path().join("data/server.json");
    let text = std::fs::read_to_string(&note).unwrap();
    assert!(text.contains("/cert.pem"), "{text}");
    std::fs::write(&note, text.replace("/cert.pem", "/copied.pem")).unwrap();
    let (ok, said) = output(folder.path(), &["keys", "list"]);
    assert!(!ok, "{said}");
}

/// Every default feature of the manifest is in the program.
#[test]
fn shipped_program_has_the_mock_and_postgres_features() {
    let (ok, help) = output(tempfile::tempdir().unwrap().path(), &["--help"]);
    assert!(ok && help.contains("mock"), "{help}");
    let folder = tempfile::tempdir().unwrap();
    // A database that is away is an error of the connection, and not of a missing feature.
    let (ok, said) = output(
        folder.path(),
        &["serve", "--listen", "127.0.0.1:0", "--store", "postgres://127.0.0.1:1/none"],
    );
    assert!(!ok && !said.contains("feature"), "{said}");
    assert!(Command::new(shipped()).arg("--version").status().unwrap().success());
}
