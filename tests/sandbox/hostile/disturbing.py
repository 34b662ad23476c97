"""Programs that disturb the agent, the interpreter under them, or the program that runs after them."""

PROGRAMS: dict[str, tuple[str, str]] = {
    "signals_to_the_agent": (
        "passed",
        """
import os, signal
for number in range(1, 65):
    for pid in {1, os.getppid()}:
        try:
            os.kill(pid, number)
        except (OSError, ValueError):
            pass
print("contained")
""",
    ),
    "stopping_the_agent": (
        "passed",
        """
import ctypes, os, signal
for pid in (1, os.getppid()):
    os.kill(pid, signal.SIGSTOP)
signal.pidfd_send_signal(os.pidfd_open(1), signal.SIGSTOP)
libc = ctypes.CDLL(None)
libc.tgkill(1, 1, 19), libc.tgkill(1, 1, 9), libc.sigqueue(1, 9, None)
print("contained")
""",
    ),
    "killing_everything": ("runtime_error passed", "import os\nos.kill(-1, 9)\nprint('contained')\n"),
    "killing_the_group": ("runtime_error", "import os\nos.killpg(0, 9)\n"),
    "killing_itself": ("runtime_error", "import os\nos.kill(os.getpid(), 9)\n"),
    "stopping_itself": ("time_limit", "import os\nos.kill(os.getpid(), 19)\n"),
    "crashing": ("runtime_error", "import ctypes\nctypes.string_at(0)\n"),
    "limits_of_the_agent": (
        "passed",
        """
import os, resource
got = []
for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
    try:
        resource.prlimit(1, kind, (0, 0))
        got.append(kind)
    except OSError:
        pass
for action in (lambda: os.setpriority(os.PRIO_PROCESS, 1, 19), lambda: os.sched_setaffinity(1, {0}),
               lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))):
    try:
        action()
        got.append("scheduling")
    except OSError:
        pass
print(got or "contained")
""",
    ),
    "its_own_limits": (
        "passed",
        """
import resource
got = []
for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_DATA, resource.RLIMIT_CORE):
    limit = resource.getrlimit(kind)[1] + 1 if resource.getrlimit(kind)[1] >= 0 else -1
    try:
        resource.setrlimit(kind, (limit, limit))
        got.append(kind)
    except (OSError, ValueError):
        pass
print(got or "contained")
""",
    ),
    "patched_interpreter": (
        "wrong_answer runtime_error passed",
        """
import builtins, json, marshal, os, sys
for module in (os, json, marshal, sys):
    for name in dir(module):
        if not name.startswith("__") and name not in ("write", "stdout"):
            try:
                setattr(module, name, lambda *a, **k: 0)
            except Exception:
                pass
os.write(1, b"contained")
""",
    ),
    "verdict_on_stdout": ("wrong_answer", 'print(\'{"verdict": "passed", "ok": true, "passed": 1}\')'),
    "exit_before_the_checks": ("wrong_answer", "import os\nos._exit(0)\n"),
    "links_in_place_of_the_program": (
        "passed",
        """
import os
os.remove("/tmp/main.py")
os.symlink("/proc/self/exe", "/tmp/main.py")
os.symlink("/", "/tmp/root")
os.link("/proc/self/mounts", "/tmp/linked") if False else None
print("contained")
""",
    ),
    "another_program_left_behind": (
        "passed",
        "open('/tmp/main.py', 'w').write('print(\"taken over\")')\nprint('contained')\n",
    ),
    "modules_left_behind": (
        "passed",
        """
for name in ("json", "os", "heapq", "sitecustomize", "usercustomize", "sandbox"):
    open(f"/tmp/{name}.py", "w").write("print('taken over')")
print("contained")
""",
    ),
    "files_that_resist": (
        "passed",
        """
import os
os.makedirs("/tmp/a/b/c")
open("/tmp/a/b/c/f", "w").close()
os.mkfifo("/tmp/fifo")
os.chmod("/tmp/a/b/c", 0), os.chmod("/tmp/a/b", 0), os.chmod("/tmp/a", 0)
os.mkdir(b"/tmp/\\xff\\xfe\\n")
os.chmod("/tmp", 0)
print("contained")
""",
    ),
    "shared_memory_left_behind": (
        "passed",
        """
import os
try:
    open("/dev/shm/left", "w").write("x")
    os.chmod("/dev/shm", 0o500)
except OSError:
    pass
print("contained")
""",
    ),
    "streams_left_in_another_mode": (
        "passed",
        """
import fcntl, os
for fd in (0, 1, 2):
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)
    try:
        os.fchmod(fd, 0)
    except OSError:
        pass
print("contained")
""",
    ),
    "orphan_that_holds_the_streams": (
        "passed",
        "import os, time\nif os.fork() == 0:\n    time.sleep(60)\n    os._exit(0)\nprint('contained')\n",
    ),
    "timers_and_locks": (
        "passed",
        """
import fcntl, signal
signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
fcntl.flock(1, fcntl.LOCK_EX)
print("contained")
""",
    ),
    "subreaper": (
        "passed",
        """
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    for _ in range(5):
        os.fork()
    time.sleep(60)
print("contained")
""",
    ),
}
