//! Process families that fork faster than they can be listed, and processes that cannot be ended. Real
//! processes with their own limits.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};
use throughline_tools::command::CommandSource;
use throughline_tools::process::{
    ChildProcess, ControlGroups, ExecHelper, ProcessLimits, ProgramSpec, RunAs, SandboxMode, SpawnContext,
};
use throughline_tools::{ExecutorLimits, ToolExecutor, ToolInvocation, Toolbox};
use throughline_wire::{CallArguments, CallOutcome, StartState};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

/// User id that runs nothing else here.
const NOBODY: u32 = 64_918;
/// Processes of a fork bomb that can live at the same time; each has at most one more that waits for a slot.
const SOME: usize = 60;
/// With `THROUGHLINE_HUNT=long`.
const MANY: usize = 400;

/// One test at a time: they take processors and processes from each other.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A fork bomb: each child is in a new session and ignores every signal that can be ignored. Limited by
/// design: a living process holds a lock on one of a fixed number of files, released by its death, and all
/// end after five minutes.
const BOMB: &str = r#"
use Fcntl qw(:flock); use POSIX ();
my ($slots, $folder) = @ARGV;
$SIG{TERM} = $SIG{HUP} = $SIG{INT} = 'IGNORE';
my ($end, $held) = (time + 300, undef);
sub hold {
    for (1 .. 16) {
        open(my $file, '>>', "$folder/" . int(rand($slots))) or next;
        if (flock($file, LOCK_EX | LOCK_NB)) { $held = $file; return 1 }
    }
    return 0;
}
hold(); $| = 1; print "ready\n";
while (time < $end) {
    pipe(my $read, my $write) or next;
    my $child = fork();
    next unless defined $child;
    if ($child == 0) {
        close $read; undef $held; POSIX::setsid(); srand($$);
        hold() or POSIX::_exit(0);
        syswrite($write, 'x');
        next;
    }
    close $write;
    next if sysread($read, my $byte, 1);
    waitpid($child, 0);
    select(undef, undef, undef, 0.05);
}
"#;

fn size() -> usize {
    if std::env::var("THROUGHLINE_HUNT").is_ok_and(|form| form == "long") { MANY } else { SOME }
}

fn helper() -> ExecHelper {
    ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), [])
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn spawn_context(helper: ExecHelper) -> SpawnContext {
    let mut spawn_context = SpawnContext::of_this_process().with_helper(helper);
    spawn_context.environment.insert("PATH".into(), "/usr/bin:/bin".into());
    spawn_context
}

/// The bomb over a folder of locks, or `None` where there is no perl.
fn bomb(living: usize, spawn_context: &SpawnContext, folder: &Path) -> Option<ProgramSpec> {
    let Ok(perl) = spawn_context.find_program("perl") else {
        println!("skipped: there is no perl to fork with");
        return None;
    };
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    let mut program = ProgramSpec::new(perl, spawn_context).argument("-e").argument(BOMB);
    program = program.argument(living.to_string()).argument(folder);
    // The limit is not under test here.
    program.limits = ProcessLimits { grace_ms: 100, processes_max: 100_000, ..ProcessLimits::default() };
    program.sandbox.mode = SandboxMode::Off;
    Some(program)
}

/// Living processes whose command line names the folder.
fn living(folder: &Path) -> usize {
    let folder = folder.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let names = |entry: &std::fs::DirEntry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(folder))
    };
    entries.filter(names).count()
}

/// Waits for a condition, without a time limit. Polling without a pause would take the processor from the
/// observed processes.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(280);
    while !is_so() {
        assert!(Instant::now() < limit, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn first_line(running: &mut ChildProcess) -> String {
    let mut line = String::new();
    BufReader::new(running.stdout.as_mut().unwrap()).read_line(&mut line).await.unwrap();
    line
}

async fn check_bomb(name: &str, size: usize, spawn_context: &SpawnContext) {
    let folder = tempfile::Builder::new().prefix("bomb-").tempdir_in("/tmp").unwrap();
    let Some(program) = bomb(size, spawn_context, folder.path()) else { return };
    let mut running = program.start().unwrap();
    if first_line(&mut running).await != "ready\n" {
        let mut complained = String::new();
        running.stderr.take().unwrap().read_to_string(&mut complained).await.unwrap();
        panic!("{name}: {complained}");
    }
    // The last places are found slowly.
    until("it is at its full size", || living(folder.path()) >= size * 3 / 4).await;
    let asked = Instant::now();
    let stopped = running.stop().await;
    println!("{name}: stopped after {:?}", asked.elapsed());
    // A busy machine may need longer; the report is true either way.
    match stopped {
        Ok(_) => assert_eq!(living(folder.path()), 0, "{name}: at the return"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{name}: {error}"),
    }
    until("nobody is left", || living(folder.path()) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_bomb_is_killed_for_every_user() {
    let _alone = ALONE.lock().await;
    check_bomb("ours", size(), &spawn_context(helper())).await;
    check_bomb("ours, unsupervised", SOME, &SpawnContext { helper: None, ..spawn_context(helper()) }).await;
    if !is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let mut tools = spawn_context(helper());
    tools.run_as = RunAs::from_setting(&NOBODY.to_string());
    check_bomb("another user's, hunted by root", size(), &tools).await;
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.exists() {
        println!("skipped: there is no setpriv to make the supervisor another user's with");
        return;
    }
    let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()];
    let exec = env!("CARGO_BIN_EXE_throughline-exec").to_owned();
    let theirs = ExecHelper::new(setpriv, user.into_iter().chain([exec]).map(Into::into));
    check_bomb("another user's, hunted by that user", size(), &spawn_context(theirs)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_max_binds_root_by_counting() {
    let _alone = ALONE.lock().await;
    if !is_root() {
        println!("skipped: others than root are bound by RLIMIT_NPROC");
        return;
    }
    let folder = tempfile::Builder::new().prefix("bomb-").tempdir_in("/tmp").unwrap();
    let Some(mut program) = bomb(SOME, &spawn_context(helper()), folder.path()) else { return };
    program.limits.processes_max = 40;
    let mut running = program.start().unwrap();
    let mut stderr = running.stderr.take().unwrap();
    let ended = running.wait().await.unwrap();
    let mut complained = String::new();
    stderr.read_to_string(&mut complained).await.unwrap();
    assert_eq!(ended.code, Some(125), "{complained}");
    assert!(complained.contains("exceeded 40 processes (processes_max)"), "{complained}");
    assert_eq!(living(folder.path()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_max_counts_growth_while_other_processes_exit() {
    let _alone = ALONE.lock().await;
    if !is_root() {
        println!("skipped: others than root are bound by RLIMIT_NPROC");
        return;
    }
    let folder = tempfile::Builder::new().prefix("growing-").tempdir_in("/tmp").unwrap();
    let others: Vec<Child> = (0..100).map(|_| Command::new("sleep").arg("600").spawn().unwrap()).collect();
    let spawn_context = spawn_context(helper());
    let mut program = ProgramSpec::new(spawn_context.find_program("sh").unwrap(), &spawn_context);
    program = program.argument("-c").argument(
        "touch here; until [ -e go ]; do sleep 0.05; done
        count=0; while [ $count -lt 60 ]; do sleep 600 & count=$((count + 1)); done; wait",
    );
    program.folder = Some(folder.path().to_owned());
    program.limits = ProcessLimits { grace_ms: 100, processes_max: 40, ..ProcessLimits::default() };
    program.sandbox.mode = SandboxMode::Off;
    let mut running = program.start().unwrap();
    until("it runs", || folder.path().join("here").exists()).await;
    for mut other in others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    std::fs::write(folder.path().join("go"), "").unwrap();
    assert_eq!(running.wait().await.unwrap().code, Some(125));
}

/// A group of the freezer (control groups version 1), in which no process can end, not even by SIGKILL.
struct Freezer(PathBuf);

impl Freezer {
    fn new(name: &str) -> Option<Self> {
        let name = format!("throughline-test-{name}-{}", std::process::id());
        let folder = Path::new("/sys/fs/cgroup/freezer").join(name);
        if std::fs::create_dir(&folder).is_ok() {
            return Some(Self(folder));
        }
        println!("skipped: there is no freezer of version 1 that may be used");
        None
    }

    fn write(&self, name: &str, value: &str) {
        std::fs::write(self.0.join(name), value).unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.write("freezer.state", "THAWED");
        let left = || std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        let limit = Instant::now() + Duration::from_secs(10);
        while !left().is_empty() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unkillable_program_is_reported_and_killed_once_thawed() {
    let _alone = ALONE.lock().await;
    let Some(freezer) = Freezer::new("program") else { return };
    let spawn_context = spawn_context(helper());
    let path = spawn_context.find_program("sh").unwrap();
    let mut program = ProgramSpec::new(path, &spawn_context);
    program = program.argument("-c").argument("echo $$; read never");
    program.limits.grace_ms = 50;
    program.sandbox.mode = SandboxMode::Off;
    let mut running = program.start().unwrap();
    let pid: u32 = first_line(&mut running).await.trim().parse().unwrap();
    freezer.write("cgroup.procs", &pid.to_string());
    freezer.write("freezer.state", "FROZEN");
    let error = running.stop().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("some of its processes are still running"), "{error}");
    let is_there = |pid: u32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    let supervisor = running.id().expect("it goes on");
    drop(running);
    assert!(is_there(pid) && is_there(supervisor));
    freezer.write("freezer.state", "THAWED");
    until("it has ended", || !is_there(pid)).await;
    until("so has its hunter", || !is_there(supervisor)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_call_reports_processes_still_running() {
    let _alone = ALONE.lock().await;
    let Some(freezer) = Freezer::new("call") else { return };
    let folder = tempfile::tempdir().unwrap();
    let noted = folder.path().join("pid");
    let settings = serde_json::json!({
        "description": "Never ends", "input": "none", "sandbox": {"mode": "off"},
        "argv": ["sh", "-c", format!("echo half; echo $$ > {}; sleep 600", noted.display())],
    });
    let commands = BTreeMap::from([("never.ends".to_owned(), serde_json::from_value(settings).unwrap())]);
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(CommandSource::new(commands, spawn_context(helper()))));
    toolbox.wait_ready(Duration::from_secs(60)).await;
    let registry = toolbox.registry();
    let call = ToolInvocation::new("call_1", "never.ends", CallArguments::from_value(serde_json::json!({})));
    let cancel = call.cancel.clone();
    let freeze = async {
        let pid = || std::fs::read_to_string(&noted).unwrap_or_default().trim().parse::<u32>().ok();
        until("it runs", || pid().is_some()).await;
        freezer.write("cgroup.procs", &pid().unwrap().to_string());
        freezer.write("freezer.state", "FROZEN");
        cancel.cancel();
    };
    // Long enough for the report before the executor's own, on any machine.
    let limits = ExecutorLimits { grace: Duration::from_secs(10), ..ExecutorLimits::default() };
    let executor = ToolExecutor::new(limits);
    let (outcome, ()) = tokio::join!(executor.run(&registry, call, |_| async {}), freeze);
    let CallOutcome::Cancelled(StartState::Yes { partial: Some(partial), .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(partial.text.starts_with("half\n"), "{}", partial.text);
    assert!(partial.text.contains("some processes of this program are still running"), "{}", partial.text);
}

/// A new group of the second version that is ours, if this machine lets us make one.
fn delegated() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let fields = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let hierarchy =
        mounts.lines().map(fields).find(|fields| fields[2] == "cgroup2").map(|fields| fields[1].clone());
    let folder =
        hierarchy.map(|root| Path::new(&root).join(format!("throughline-test-{}", std::process::id())));
    let made = folder.filter(|folder| std::fs::create_dir(folder).is_ok());
    if made.is_none() {
        println!("skipped: there is no hierarchy of version 2 that may be written");
    }
    made
}

// On a real kernel.
#[tokio::test(flavor = "multi_thread")]
async fn program_in_its_own_cgroup_is_killed_with_its_children() {
    let _alone = ALONE.lock().await;
    let Some(folder) = delegated() else { return };
    let groups = ControlGroups::claim(&folder).unwrap();
    println!("counted: processes {}, memory {}", groups.counts_processes, groups.counts_memory);
    let mut own = spawn_context(helper());
    own.control_groups = Some(groups);
    let path = own.find_program("sh").unwrap();
    let mut running = ProgramSpec::new(path, &own)
        .argument("-c")
        .argument("cat /proc/self/cgroup; read never")
        .start()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let mut group = None;
    while group.is_none() {
        let line = lines.next_line().await.unwrap().expect("its groups");
        group = line.strip_prefix("0::").map(str::to_owned);
    }
    assert!(group.as_ref().unwrap().contains("/program-"), "{group:?}");
    running.stop().await.unwrap();
    check_bomb("in its own control group", SOME, &own).await;
    // The supervisor removes the groups of its programs; the remaining one is ours.
    std::fs::remove_dir(&folder).unwrap();
}
