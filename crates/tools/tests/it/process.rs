//! Children end with everything that they started, and reach only permitted files and processes. Real
//! processes.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use throughline_tools::process::{
    ChildExit, ChildProcess, ExecHelper, NetworkAccess, ProcessLimits, ProgramSpec, RunAs, SandboxMode,
    SandboxRules, SandboxStatus, SpawnContext,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

fn helper() -> ExecHelper {
    ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), [])
}

/// Runs `sh -c script`; `tag` ends up in the command lines of the started processes, so that they can be
/// found.
fn shell(helper: Option<ExecHelper>, tag: &str, script: &str) -> ProgramSpec {
    let spawn_context = SpawnContext { helper, ..SpawnContext::of_this_process() };
    let path = spawn_context.find_program("sh").unwrap();
    ProgramSpec::new(path, &spawn_context).argument("-c").argument(script).argument(tag)
}

/// A number of seconds that no other test waits: it is seen in `/proc`.
fn unique(name: &str) -> String {
    let sum: u32 = name.bytes().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("9{:09}.{}", sum % 1_000_000_000, std::process::id())
}

/// Command lines of living processes with this text in them.
fn alive(tag: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let mut found = Vec::new();
    for process in processes {
        let Ok(line) = std::fs::read(process.join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(tag) {
            found.push(line);
        }
    }
    found
}

/// Waits until processes are there, or are not; how long one waits is no part of the test.
async fn until(tag: &str, what: &str, is_so: impl Fn(&[String]) -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let found = alive(tag);
        if is_so(&found) {
            return;
        }
        assert!(Instant::now() < limit, "{what}: {found:#?}");
        // The scan must not take the processor from the observed processes.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn first_line(running: &mut ChildProcess) -> String {
    let mut line = String::new();
    BufReader::new(running.stdout.as_mut().unwrap()).read_line(&mut line).await.unwrap();
    line
}

/// Every way in which a program may try to survive: ignore signals, fork, detach, become a daemon, drop its
/// environment.
fn hostile(tag: &str, with_clean_environment: bool) -> String {
    let clean = if with_clean_environment {
        format!("(env -i setsid sh -c 'trap \"\" TERM HUP; sleep {tag}4 & sleep {tag}5' &) ")
    } else {
        String::new()
    };
    format!(
        "trap '' TERM INT HUP
         sleep {tag}1 &
         setsid sh -c 'trap \"\" TERM; sleep {tag}2; sleep {tag}2' &
         (setsid sh -c 'trap \"\" TERM HUP; (sleep {tag}3 &); sleep {tag}3' > /dev/null 2>&1 &)
         {clean}
         echo ready
         while :; do sleep {tag}0; done"
    )
}

async fn check_nothing_survives(name: &str, helper: Option<ExecHelper>, end: End) {
    let tag = unique(name);
    let clean = helper.is_some();
    let mut running = shell(helper, &tag, &hostile(&tag, clean)).start().unwrap();
    assert_eq!(first_line(&mut running).await, "ready\n");
    let expected = if clean { 6 } else { 4 };
    until(&format!("sleep {tag}"), "it has started everything", |found| {
        found.iter().filter(|line| line.starts_with("sleep ")).count() >= expected
    })
    .await;
    match end {
        End::Stop => {
            let ended = running.stop().await.unwrap();
            assert_eq!(ended, ChildExit { code: None, signal: Some(9) }, "{name}: it ignored SIGTERM");
            assert_eq!(alive(&tag), Vec::<String>::new(), "{name}: at the return");
        }
        End::Drop => drop(running),
    }
    until(&tag, name, <[String]>::is_empty).await;
}

enum End {
    Stop,
    Drop,
}

#[tokio::test(flavor = "multi_thread")]
async fn no_descendant_survives_stop_or_drop() {
    check_nothing_survives("stopped, supervised", Some(helper()), End::Stop).await;
    check_nothing_survives("dropped, supervised", Some(helper()), End::Drop).await;
    check_nothing_survives("stopped, alone", None, End::Stop).await;
    check_nothing_survives("dropped, alone", None, End::Drop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn background_processes_are_killed_when_the_program_exits() {
    for (name, helper) in [("left, supervised", Some(helper())), ("left, alone", None)] {
        let tag = unique(name);
        let script = format!("setsid sleep {tag} > /dev/null 2>&1 & sleep {tag} & echo done; exit 3");
        let mut running = shell(helper, "", &script).start().unwrap();
        assert_eq!(first_line(&mut running).await, "done\n");
        assert_eq!(running.wait().await.unwrap(), ChildExit { code: Some(3), signal: None }, "{name}");
        assert_eq!(alive(&tag), Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn program_that_exits_on_sigterm_is_not_killed() {
    for helper in [Some(helper()), None] {
        let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
        let mut running = shell(helper, "", script).start().unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
        assert_eq!(running.stop().await.unwrap(), ChildExit { code: Some(7), signal: None });
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("bye"));
    }
}

// A supervisor that is killed itself: its processes are found by their mark.
#[tokio::test(flavor = "multi_thread")]
async fn children_die_with_a_killed_supervisor() {
    let tag = unique("killed supervisor");
    let script = format!("setsid sleep {tag}1 & echo ready; sleep {tag}2; :");
    let mut running = shell(Some(helper()), &tag, &script).start().unwrap();
    assert_eq!(first_line(&mut running).await, "ready\n");
    until(&format!("sleep {tag}1"), "it has started", |found| !found.is_empty()).await;
    let supervisor = i32::try_from(running.id().unwrap()).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(supervisor).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert_eq!(running.wait().await.unwrap().signal, Some(9));
    until(&tag, "after the supervisor", <[String]>::is_empty).await;
}

// A supervisor that its child has stopped still receives its signals.
#[tokio::test(flavor = "multi_thread")]
async fn sigstopped_supervisor_is_resumed_and_its_program_killed() {
    let tag = unique("stopped supervisor");
    let mut program = shell(
        Some(helper()),
        &tag,
        &format!("trap '' TERM; env -i setsid sleep {tag}1 & kill -STOP $PPID; echo ready; sleep {tag}2; :"),
    );
    // Landlock would not let it.
    program.sandbox.mode = SandboxMode::Off;
    for end in [End::Drop, End::Stop] {
        let mut running = program.start().unwrap();
        assert_eq!(first_line(&mut running).await, "ready\n");
        until(&format!("sleep {tag}1"), "it has started", |found| !found.is_empty()).await;
        match end {
            End::Drop => drop(running),
            End::Stop => drop(running.stop().await.unwrap()),
        }
        until(&tag, "after the stopped supervisor", <[String]>::is_empty).await;
    }
}

// We are killed with SIGKILL, and can do nothing any more.
#[tokio::test]
async fn child_does_not_outlive_its_parent_process() {
    let tag = unique("outlived");
    let private = tempfile::tempdir().unwrap();
    let orders = |parent: &str| {
        format!(
            r#"{{"parent":{parent},"limits":{{}},"private":"{}","sandbox":{{"mode":"on","read":null,"write":[],"network":"allow"}}}}"#,
            private.path().display()
        )
    };
    // A shell in place of this process.
    let script = format!(
        "\"$0\" supervise '{}' /bin/sh -c 'setsid sleep {tag} & sleep {tag}; :' {tag} & wait",
        orders("'$$'")
    );
    let mut us = tokio::process::Command::new("/bin/sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_throughline-exec")])
        .spawn()
        .unwrap();
    until(&format!("sleep {tag}"), "it has started", |found| {
        found.iter().filter(|line| line.starts_with("sleep ")).count() == 2
    })
    .await;
    us.kill().await.unwrap();
    until(&tag, "after us", <[String]>::is_empty).await;
    assert!(!private.path().exists(), "its folder is removed, too");
}

/// The output of a shell that tries something under rules.
async fn tried(rules: SandboxRules, limits: ProcessLimits, script: &str) -> String {
    let mut program = shell(Some(helper()), "", script);
    program.sandbox = rules;
    program.limits = limits;
    program.environment.insert("LC_ALL".into(), "C".into());
    let mut running = program.start().unwrap();
    drop(running.stdin.take());
    let (mut output, mut errors) = (String::new(), String::new());
    let (mut stdout, mut stderr) = (running.stdout.take().unwrap(), running.stderr.take().unwrap());
    tokio::try_join!(stdout.read_to_string(&mut output), stderr.read_to_string(&mut errors)).unwrap();
    let ended = running.wait().await.unwrap();
    let code = ended.code.unwrap_or_else(|| 1_000 + ended.signal.unwrap());
    format!("{output}{errors}= {code}")
}

#[tokio::test]
async fn sandbox_restricts_reads_and_writes() {
    let probe = helper().probe().await.unwrap();
    assert_eq!(probe.cannot_supervise, None);
    let SandboxStatus::Landlock { abi, .. } = probe.sandbox else {
        // Reported truthfully; and a program that requires confinement does not start.
        let rules = SandboxRules { mode: SandboxMode::Required, ..SandboxRules::default() };
        let output = tried(rules, ProcessLimits::default(), "echo ran").await;
        assert!(output.contains("the sandbox is required but not available"), "{output}");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (open, shut) = (folder.path().join("open"), folder.path().join("shut"));
    for folder in [&open, &shut] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("file"), "secret\n").unwrap();
    }
    let try_all = format!(
        "cat {open}/file {shut}/file; echo a > {open}/new; echo b > {shut}/new; echo c > new; cat new; echo $PWD $TMPDIR > /dev/null; true",
        open = open.display(),
        shut = shut.display()
    );
    let check = async |rules: SandboxRules, refused: &[&Path], allowed: &[&Path]| {
        let _ = std::fs::remove_file(open.join("new"));
        let _ = std::fs::remove_file(shut.join("new"));
        let output = tried(rules, ProcessLimits::default(), &try_all).await;
        for path in refused {
            assert!(output.contains(&path.display().to_string()), "{} was allowed: {output}", path.display());
        }
        for path in allowed {
            assert!(
                !output.contains(&path.display().to_string()),
                "{} was refused: {output}",
                path.display()
            );
        }
        assert!(output.contains("c\n"), "its own folder is writable: {output}");
        assert!(output.ends_with("= 0"), "{output}");
    };
    let (read_open, read_shut) = (open.join("file"), shut.join("file"));
    let (write_open, write_shut) = (open.join("new"), shut.join("new"));
    let rules = |read: Option<&Path>, write: Option<&Path>| SandboxRules {
        mode: SandboxMode::Required,
        read: read.map(|read| vec![read.to_owned()]),
        write: write.map(Path::to_owned).into_iter().collect(),
        ..SandboxRules::default()
    };
    // As it comes: reads everything, writes nothing.
    check(rules(None, None), &[&write_open, &write_shut], &[&read_open, &read_shut]).await;
    check(rules(None, Some(&open)), &[&write_shut], &[&read_open, &read_shut, &write_open]).await;
    check(rules(Some(&open), None), &[&read_shut, &write_open, &write_shut], &[&read_open]).await;
    let off = SandboxRules { mode: SandboxMode::Off, ..SandboxRules::default() };
    check(off, &[], &[&read_open, &read_shut, &write_open, &write_shut]).await;
    if abi >= 6 {
        // Our own process is out of its reach.
        let output =
            tried(rules(None, None), ProcessLimits::default(), &format!("kill -0 {}", std::process::id()))
                .await;
        assert!(output.contains("ermitted"), "{output}");
    }
    let output = tried(
        rules(None, None),
        ProcessLimits::default(),
        &format!("cat /proc/{}/environ", std::process::id()),
    )
    .await;
    assert!(output.contains("ermi"), "our environment, with its secrets: {output}");
}

#[tokio::test]
async fn resource_limits_are_enforced() {
    let on = SandboxRules::default;
    let limits = |edit: fn(&mut ProcessLimits)| {
        let mut limits = ProcessLimits::default();
        edit(&mut limits);
        limits
    };
    let output = tried(on(), ProcessLimits::default(), "ulimit -n; ulimit -c; ulimit -d").await;
    assert_eq!(output, "1024\n0\n4194304\n= 0", "memory in KiB");
    let output =
        tried(on(), limits(|limits| limits.file_bytes_max = 4_096), "head -c 9999 /dev/zero > f; wc -c < f")
            .await;
    assert!(output.starts_with("4096\n"), "{output}");
    let output =
        tried(on(), limits(|limits| limits.open_files_max = 3), "exec 7< /dev/null; echo reached").await;
    assert!(!output.contains("reached"), "{output}");
    let hungry = "x=$(head -c 64000000 /dev/zero | tr '\\0' x); echo ${#x}";
    assert!(tried(on(), ProcessLimits::default(), hungry).await.starts_with("64000000\n"));
    let output = tried(on(), limits(|limits| limits.memory_bytes_max = 32 << 20), hungry).await;
    assert!(!output.contains("64000000"), "{output}");
}

#[tokio::test]
async fn processes_max_adds_to_the_tasks_of_the_user() {
    if rustix::process::geteuid().as_raw() != 0 {
        println!("skipped: only root can become another user");
        return;
    }
    // A separate user, who runs nothing else.
    let run_as = RunAs::from_setting("61742");
    let spawn_context = SpawnContext { helper: Some(helper()), run_as, ..SpawnContext::of_this_process() };
    let start = |script: &str| {
        let path = spawn_context.find_program("sh").unwrap();
        let mut program = ProgramSpec::new(path, &spawn_context).argument("-c").argument(script);
        program.limits = ProcessLimits { processes_max: 60, ..ProcessLimits::default() };
        program.sandbox.mode = SandboxMode::Off;
        program.start().unwrap()
    };
    let limit = "grep '^Max processes' /proc/self/limits; read -r line";
    // Tasks that a container does not show count as the user's; on a whole machine there are none. Other
    // processes begin and end during the test.
    let (all, seen) = machines_tasks();
    let most = 60 + all.saturating_sub(seen) + 20;
    let mut running = start(limit);
    let line = first_line(&mut running).await;
    let found: u64 = line.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!((60..=most).contains(&found), "{line}: at most {most} of {all} tasks, {seen} of them seen");
    running.stop().await.unwrap();
}

/// Tasks of the machine, and those that `/proc` shows.
fn machines_tasks() -> (u64, u64) {
    let loadavg = std::fs::read_to_string("/proc/loadavg").unwrap();
    let all = loadavg.split(' ').nth(3).unwrap().split_once('/').unwrap().1.parse().unwrap();
    let statuses = std::fs::read_dir("/proc").unwrap().flatten();
    let statuses = statuses.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    let threads = |status: String| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
    };
    (all, statuses.filter_map(threads).sum())
}

#[tokio::test]
async fn network_deny_blocks_sockets_but_allows_socketpair() {
    let probe = helper().probe().await.unwrap();
    if let Some(why) = probe.cannot_deny_sockets {
        println!("skipped: {why}");
        return;
    }
    // Family and type of TCP, UDP, Unix, raw netlink, and what `socketpair` gives.
    let script = "perl -MSocket -e '
        for ([AF_INET, SOCK_STREAM], [AF_INET, SOCK_DGRAM], [AF_INET6, SOCK_DGRAM], [AF_UNIX, SOCK_STREAM], [AF_UNIX, SOCK_DGRAM], [16, 3]) {
            print socket(my $s, $_->[0], $_->[1], 0) ? \"open\" : 0 + $!, \" \";
        }
        print socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) ? \"pair\" : \"none\";'";
    let denied = SandboxRules { network: NetworkAccess::Deny, ..SandboxRules::default() };
    let output = tried(denied.clone(), ProcessLimits::default(), script).await;
    if output.contains("not found") {
        println!("skipped: there is no perl");
        return;
    }
    assert_eq!(output, "13 13 13 13 13 13 pair= 0");
    let output = tried(SandboxRules::default(), ProcessLimits::default(), script).await;
    assert!(output.starts_with("open open "), "{output}");
}

#[tokio::test]
async fn run_as_switches_user_and_group_and_drops_capabilities() {
    let script = "id -u; id -g; id -G; echo $HOME; echo mine > $TMPDIR/file && cat $TMPDIR/file; cat /proc/self/status | grep CapEff";
    let context_for = |name: &str| {
        let run_as = RunAs::from_setting(name);
        SpawnContext { helper: Some(helper()), run_as, ..SpawnContext::of_this_process() }
    };
    let missing = context_for("no-such-user").find_program("sh").unwrap_err().to_string();
    assert_eq!(missing, "run_as = \"no-such-user\": unknown user in /etc/passwd; a numeric id also works");
    if rustix::process::geteuid().as_raw() != 0 {
        let root = context_for("root").find_program("sh").unwrap_err().to_string();
        assert!(root.contains("only root can become another user"), "{root}");
        println!("skipped: only root can become another user");
        return;
    }
    for helper in [Some(helper()), None] {
        let spawn_context = SpawnContext { helper, ..context_for("64919:64920") };
        let path = spawn_context.find_program("sh").unwrap();
        let mut program = ProgramSpec::new(path, &spawn_context).argument("-c").argument(script);
        program.folder = Some("/".into());
        let is_supervised = program.helper.is_some();
        let mut running = program.start().unwrap();
        let (mut output, mut errors) = (String::new(), String::new());
        running.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
        running.stderr.take().unwrap().read_to_string(&mut errors).await.unwrap();
        assert!(output.starts_with("64919\n64920\n64920\n"), "{output}{errors}");
        assert!(output.ends_with("CapEff:\t0000000000000000\n"), "{output}");
        // Without a supervisor no process can give the folder to the user.
        assert_eq!(output.contains("mine\n"), is_supervised, "{output}{errors}");
        running.wait().await.unwrap();
    }
}

#[tokio::test]
async fn child_environment_holds_only_given_and_own_variables() {
    for helper in [Some(helper()), None] {
        let mut program = shell(
            helper,
            "",
            "env | cut -d= -f1 | sort | grep -v -e '^_$' -e '^PWD$' -e '^SHLVL$' -e '^OLDPWD$'",
        );
        program.environment =
            BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into()), ("CITY".into(), "Paris".into())]);
        let mut running = program.start().unwrap();
        let mut output = String::new();
        running.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
        assert_eq!(output, "CITY\nPATH\nTHROUGHLINE_CHILD\nTMPDIR\n");
        assert!(running.wait().await.unwrap().is_success());
    }
}

#[tokio::test]
async fn stdin_output_and_exit_code_are_forwarded() {
    for helper in [Some(helper()), None] {
        let mut running = shell(helper, "", "cat; echo complaint >&2; exit 5").start().unwrap();
        let mut stdin = running.stdin.take().unwrap();
        stdin.write_all(b"{\"city\":\"Paris\"}").await.unwrap();
        drop(stdin);
        let (mut output, mut errors) = (String::new(), String::new());
        running.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
        running.stderr.take().unwrap().read_to_string(&mut errors).await.unwrap();
        assert_eq!((output.as_str(), errors.as_str()), ("{\"city\":\"Paris\"}", "complaint\n"));
        assert_eq!(running.wait().await.unwrap().code, Some(5));
    }
}

#[tokio::test]
async fn termination_signal_is_reported() {
    for helper in [Some(helper()), None] {
        let mut running = shell(helper, "", "kill -SEGV $$").start().unwrap();
        assert_eq!(running.wait().await.unwrap(), ChildExit { code: None, signal: Some(11) });
    }
}

#[tokio::test]
async fn script_without_interpreter_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (text, script) = (folder.path().join("text"), folder.path().join("script"));
    std::fs::write(&text, "#!/no/such/interpreter\n").unwrap();
    // A file that is open for writing in a child that another test forks cannot be started: another process
    // writes it.
    let installed = std::process::Command::new("install").args(["-m", "755"]).args([&text, &script]).status();
    assert!(installed.unwrap().success());
    let spawn_context = SpawnContext::of_this_process().with_helper(helper());
    let mut running =
        ProgramSpec::new(spawn_context.find_program(script.to_str().unwrap()).unwrap(), &spawn_context)
            .start()
            .unwrap();
    let mut errors = String::new();
    running.stderr.take().unwrap().read_to_string(&mut errors).await.unwrap();
    assert!(errors.starts_with("throughline: ") && errors.contains("cannot be started"), "{errors}");
    assert_eq!(running.wait().await.unwrap().code, Some(125));
    let alone = ProgramSpec { helper: None, ..ProgramSpec::new(script, &spawn_context) };
    assert!(alone.start().unwrap_err().to_string().contains("cannot be started"));
}
