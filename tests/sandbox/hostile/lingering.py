"""Programs that try to leave something behind where the agent may not look, or to hold on to what tests share."""

PROGRAMS: dict[str, tuple[str, str]] = {
    "a_second_name_for_the_program": ("passed", "import os\nos.link('main.py', 'other.py')\nprint('contained')\n"),
    "another_file_of_the_same_size": (
        "passed",
        """
import os
source = open("main.py", "rb").read()
os.rename("main.py", "old")
open("main.py", "wb").write(b"#" * len(source))
os.remove("old")
print("contained")
""",
    ),
    "the_program_overwritten_through_a_mapping": (
        "passed",
        """
import mmap
with open("main.py", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
    view[:] = b"#" * len(view)
print("contained")
""",
    ),
    "the_program_replaced_by_a_directory": (
        "passed",
        "import os\nos.remove('main.py')\nos.mkdir('main.py')\nopen('main.py/x', 'w').close()\nprint('contained')\n",
    ),
    "exchanged_names_and_whiteouts": (
        "passed",
        """
import ctypes, os
libc = ctypes.CDLL(None)
os.mkdir("d")
open("d/x", "w").close()
libc.renameat2(-100, b"main.py", -100, b"d/x", 2)
libc.renameat2(-100, b"d/x", -100, b"d/y", 4)
print("contained")
""",
    ),
    "a_name_for_an_unnamed_file": (
        "passed",
        """
import ctypes, os
fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
made = ctypes.CDLL(None).linkat(-100, b"/proc/self/fd/%d" % fd, -100, b"/tmp/named", 0x400)
print("contained" if made == 0 else "not linked")
""",
    ),
    "an_unnamed_file_that_fills_the_disk": (
        "passed runtime_error",
        """
import os
try:
    while True:
        fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
        os.posix_fallocate(fd, 0, 32 << 20)
except OSError:
    print("contained")
""",
    ),
    "shared_memory_closed_to_the_agent": (
        "passed",
        """
import os
try:
    open("/dev/shm/left", "w").write("x")
    os.chmod("/dev/shm", 0)
except OSError:
    pass
print("contained")
""",
    ),
    "scratch_closed_to_the_agent": (
        "passed",
        "import os\nos.mkdir('d')\nos.chmod('main.py', 0)\nos.chmod('d', 0)\nos.chmod('/tmp', 0o111)\nprint('contained')\n",
    ),
    "stdout_with_a_hole": ("output_limit", "import os\nos.pwrite(1, b'x', 32 << 20)\n"),
    "stdin_made_large": (
        "passed runtime_error",
        "import os\nos.write(0, b'x' * (1 << 20))\nos.posix_fallocate(0, 0, 48 << 20)\nprint('contained')\n",
    ),
    "stderr_stuffed_and_kept": (
        "passed",
        """
import fcntl, os, time
fcntl.fcntl(2, 1031, 4096)
fcntl.fcntl(2, fcntl.F_SETFL, os.O_NONBLOCK)
if os.fork() == 0:
    while True:
        try:
            os.write(2, b"x" * 4096)
        except BlockingIOError:
            time.sleep(0.001)
print("contained")
""",
    ),
    "template_killed_at_the_end": (
        "passed",
        "import os, atexit\natexit.register(os.kill, os.getppid(), 9)\nprint('contained')\n",
    ),
    "template_stopped_at_the_end_before_many_that_share_memory": (
        "passed",
        """
import os, time
x = b"x" * (50 << 20)
for _ in range(6):
    if os.fork() == 0:
        time.sleep(60)
os.kill(os.getppid(), 19)
print("contained")
""",
    ),
    "template_stopped_again_and_again": (
        "passed time_limit",
        """
import os, time
parent = os.getppid()
if os.fork() == 0:
    while True:
        os.kill(parent, 19)
        time.sleep(0.0005)
print("contained")
""",
    ),
    "signals_by_way_of_descriptors": (
        "passed",
        """
import fcntl, os, socket
for target in (1, os.getppid()):
    a, b = socket.socketpair()
    try:
        fcntl.fcntl(a, fcntl.F_SETOWN, target)
        fcntl.fcntl(a, 10, 9)
        fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
    except OSError:
        pass
    b.send(b"x")
print("contained")
""",
    ),
    "descriptors_in_flight": (
        "passed",
        """
import os, socket
sent = 0
try:
    while sent < 100000:
        a, b = socket.socketpair()
        socket.send_fds(a, [b"x"], [a.fileno(), b.fileno()] * 50)
        a.close(), b.close()
        sent += 100
except OSError:
    pass
print("contained")
""",
    ),
    "prctl": (
        "passed",
        """
import ctypes
libc = ctypes.CDLL(None)
tried = {"seccomp": libc.prctl(22, 2, 0, 0, 0), "capabilities": libc.prctl(47, 2, 21, 0, 0), "ids": libc.prctl(35, 9, 0, 0, 0)}
libc.prctl(4, 1, 0, 0, 0), libc.prctl(1, 9, 0, 0, 0), libc.prctl(0x59616D61, -1, 0, 0, 0)
tried["privileges"] = libc.prctl(38, 0, 0, 0, 0)
print([name for name, result in tried.items() if result != -1] or "contained")
""",
    ),
    "generations_that_outrun_the_agent": (
        "passed time_limit runtime_error",
        """
import os
print("contained", flush=True)
while True:
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        pass
""",
    ),
    "template_memory_and_descriptors": (
        "passed",
        """
import os
got = []
for pid in (1, os.getppid()):
    for name in ("mem", "fd", "environ", "maps", "task", "syscall", "stack", "io", "auxv", "map_files", "timers"):
        path = f"/proc/{pid}/{name}"
        try:
            if name == "task":
                os.open(f"{path}/{pid}/mem", os.O_RDWR)
            got.append((path, os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(8)))
        except OSError:
            pass
print([path for path, seen in got if not path.endswith(("timers",)) and seen] or "contained")
""",
    ),
}
