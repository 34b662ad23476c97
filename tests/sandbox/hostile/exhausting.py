"""Programs that use up what they share with others: processes, memory, files, descriptors, output, time."""

PROGRAMS: dict[str, tuple[str, str]] = {
    "fork_bomb": (
        "passed wrong_answer time_limit runtime_error",
        """
import os
try:
    while True:
        os.fork()
except OSError:
    pass
print("contained")
""",
    ),
    "fork_bomb_that_goes_on": (
        "time_limit",
        """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    ),
    "zombies": (
        "passed",
        """
import os
made = 0
try:
    while made < 5000:
        if os.fork() == 0:
            os._exit(0)
        made += 1
except OSError:
    pass
print("contained" if made < 200 else made)
""",
    ),
    "pid_space": (
        "passed time_limit",
        """
import os
for _ in range(3000):
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
print("contained")
""",
    ),
    "daemon": (
        "passed",
        """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            open("/tmp/still-here", "w").write("x")
            time.sleep(0.01)
    os._exit(0)
os.wait()
print("contained")
""",
    ),
    "many_daemons": (
        "passed",
        """
import os, time
for _ in range(40):
    if os.fork() == 0:
        os.setsid()
        while True:
            time.sleep(1)
print("contained")
""",
    ),
    "thread_bomb": (
        "passed",
        """
import threading, time
made = 0
try:
    while made < 5000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        made += 1
except RuntimeError:
    pass
print("contained" if made < 200 else made)
""",
    ),
    "memory_of_one_process": ("memory_limit", "x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n"),
    "memory_requested_at_once": ("memory_limit", "x = bytearray(1 << 40)\n"),
    "memory_swallowed": (
        "memory_limit",
        "try:\n    x = [bytearray(1 << 24) for _ in range(60)]\nexcept MemoryError:\n    pass\nx = None\nprint('contained')",
    ),
    "memory_of_many_processes": (
        "memory_limit",
        """
import os, time
for _ in range(20):
    if os.fork() == 0:
        x = bytearray(os.urandom(1 << 16)) * (40 << 4)
        time.sleep(30)
time.sleep(30)
""",
    ),
    "memory_of_a_shared_mapping": (
        "memory_limit time_limit",  # a page fault each may cost too much time first
        "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096):\n    m[i] = 1\nprint('contained')",
    ),
    "memory_in_pipes_and_sockets": (
        "passed runtime_error",
        """
import os, socket
held = []
try:
    while True:
        pair = socket.socketpair()
        pair[0].setblocking(False)
        held.append(pair)
        try:
            while True:
                pair[0].send(bytes(1 << 16))
        except BlockingIOError:
            pass
except OSError:
    pass
print("contained" if len(held) < 200 else len(held))
""",
    ),
    "disk": (
        "passed runtime_error",  # stdout is kept in the same scratch space
        """
written, number = 0, 0
try:
    while written < 1 << 30:
        with open(f"/tmp/{number}", "wb") as file:
            for _ in range(32):
                written += file.write(bytes(1 << 20))
        number += 1
except OSError:
    pass
print("contained" if written < 300 << 20 else written)
""",
    ),
    "disk_in_one_file": (
        "passed",
        """
import os
fd = os.open("/tmp/big", os.O_CREAT | os.O_WRONLY)
try:
    os.ftruncate(fd, 1 << 30)
    print("grew")
except OSError:
    print("contained")
""",
    ),
    "inodes": (
        "passed",
        """
made = 0
try:
    while made < 100000:
        open(f"/tmp/file-{made}", "w").close()
        made += 1
except OSError:
    pass
print("contained" if made < 10000 else made)
""",
    ),
    "deep_directories": (
        "passed",
        """
import os
depth = 0
try:
    while depth < 3000:
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
        open("file", "w").close()
        depth += 1
except OSError:
    pass
print("contained")
""",
    ),
    "descriptors": (
        "passed",
        """
import os
held = []
try:
    while len(held) < 100000:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
print("contained" if len(held) < 1000 else len(held))
""",
    ),
    "endless_stdout": ("output_limit", "while True:\n    print('1234567890' * 1000)\n"),
    "large_stdout_at_once": ("output_limit", "print('x' * (9 << 20))\n"),
    "endless_stderr": ("time_limit", "import sys\nwhile True:\n    sys.stderr.write('1234567890' * 1000)\n"),
    "endless_loop": ("time_limit", "while True:\n    pass\n"),
    "sleep": ("time_limit", "import time\ntime.sleep(1000)\n"),
    "time_spent_in_children": (
        "time_limit",
        """
import os
for _ in range(3):
    if os.fork() == 0:
        while True:
            pass
os.wait()
""",
    ),
    "source_nested_deep": ("syntax_error runtime_error memory_limit", "x = " + "[" * 100_000 + "]" * 100_000),
    "source_of_one_long_expression": (
        "syntax_error runtime_error memory_limit passed",
        "x = " + "-" * 200_000 + "1\nprint('contained')",
    ),
    "source_too_long": ("syntax_error", "# " + "x" * (5 << 20)),
    "source_that_computes_while_compiling": (
        "passed time_limit memory_limit",
        "x = lambda: 2 ** 2 ** 40\nprint('contained')",
    ),
    "endless_value": (
        "memory_limit time_limit runtime_error",
        "def solve():\n    while True:\n        yield 'x' * 1000\n",
    ),
    "value_that_contains_itself": ("wrong_answer", "def solve():\n    x = []\n    x.append(x)\n    return x\n"),
    "value_too_large": ("output_limit", "def solve():\n    return 'x' * (9 << 20)\n"),
    "recursion_without_end": (
        "runtime_error memory_limit time_limit",
        "import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    def __getattr__(self, n): return getattr(self, n + 'x')\nA().x\n",
    ),
}
