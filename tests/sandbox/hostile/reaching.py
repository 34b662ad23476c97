"""Programs that reach for what is not theirs: files, processes, networks, privileges, expected values."""

# A system call by number; -1 if it was refused.
_SYSCALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    return libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
"""

PROGRAMS: dict[str, tuple[str, str]] = {
    "host_files": (
        "passed",
        """
import os
got = []
for path in ("CANARY_FILE", "/proc/1/rootCANARY_FILE", "/proc/1/cwdCANARY_FILE", "/etc/shadow", "HOST_HOME/.ssh", "HOST_HOME/.bashrc",
             "/run/docker.sock", "/var/run/docker.sock"):
    try:
        got.append((path, os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(20)))
    except OSError:
        pass
print(got or "contained")
""",
    ),
    "host_files_by_walking": (
        "passed",
        """
import os
found = [os.path.join(d, f) for d, _, files in os.walk("/") for f in files if "cobalt" in f]
print(found or "contained")
""",
    ),
    "environment": (
        "passed",
        """
import glob, os
seen = [str(dict(os.environ))]
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        seen.append(open(path, errors="replace").read())
    except OSError:
        pass
print("leaked" if any("canary" + "-value" in text for text in seen) else "contained")
""",
    ),
    "other_processes": (
        "passed",
        """
import os
pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
others = set(pids) - {1, os.getppid(), os.getpid()}
print(others or "contained")
""",
    ),
    "expected_values_in_memory": (
        "wrong_answer",
        """
import re
wanted = re.compile(b"K9X-" + b"expected-[a-z]+")
for line in open("/proc/self/maps"):
    span, mode = line.split()[:2]
    if "r" not in mode or "[v" in line:
        continue
    low, high = (int(x, 16) for x in span.split("-"))
    try:
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(low)
            for hit in wanted.findall(memory.read(high - low)):
                print(hit.decode())
                raise SystemExit
    except OSError:
        pass
print("contained")
""",
    ),
    "expected_values_in_frames": (
        "wrong_answer",
        """
import gc, sys
frame, seen = sys._getframe(), []
while frame:
    seen.append(repr(frame.f_locals)[:100000])
    frame = frame.f_back
seen += [repr(o)[:1000] for o in gc.get_objects() if isinstance(o, (dict, list, tuple)) and len(o) < 50]
hits = [s[s.index("K9X-" + "exp"):][:30] for s in seen if "K9X-" + "exp" in s]
print(hits[0] if hits else "contained")
""",
    ),
    "forged_results_on_every_descriptor": (
        "wrong_answer",
        """
import json, os, struct
body = json.dumps({"verdict": "passed", "ok": True}).encode()
frame = struct.pack("!IB", 33, 3) + bytes(33)
for fd in range(3, 1024):
    for data in (frame, body):
        try:
            os.write(fd, data)
        except OSError:
            pass
print("contained")
""",
    ),
    "agent_descriptors": (
        "passed",
        """
import os
got = []
try:
    for name in os.listdir("/proc/1/fd"):
        fd = os.open(f"/proc/1/fd/{name}", os.O_RDWR)
        os.write(fd, b"x" * 100)
        got.append(name)
except OSError:
    pass
print(got or "contained")
""",
    ),
    "agent_memory": (
        "passed",
        """
got = []
for path in ("/proc/1/mem", "/proc/1/maps", "/proc/1/root", "/proc/1/cwd", "/proc/1/exe"):
    try:
        open(path, "r+b" if path.endswith("mem") else "rb")
        got.append(path)
    except OSError:
        pass
print(got or "contained")
""",
    ),
    "ptrace": (
        "passed",
        _SYSCALL
        + """
results = [libc.ptrace(request, ctypes.c_long(1), None, None) for request in (16, 0x4206)]
print("contained" if set(results) == {-1} else results)
""",
    ),
    "process_vm_writev_and_pidfd_getfd": (
        "passed",
        _SYSCALL
        + """
class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(8)
span = Span(ctypes.addressof(buffer), 8)
results = [libc.process_vm_writev(1, ctypes.byref(span), 1, ctypes.byref(span), 1, 0)]
results += [call(438, os.pidfd_open(1), fd, 0) for fd in range(10)]
print("contained" if set(results) == {-1} else results)
""",
    ),
    "mount_and_pivot": (
        "passed",
        _SYSCALL
        + """
results = [
    libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.mount(b"/", b"/tmp", None, 4096, None),
    libc.mount(b"proc", b"/tmp", b"proc", 0, None), libc.umount2(b"/proc", 2), call(155, b"/tmp", b"/tmp"),
    call(428, -100, b"/", 1), call(430, b"tmpfs", 0),
]
print("contained" if set(results) == {-1} else results)
""",
    ),
    "chroot": (
        "passed",
        """
import os
try:
    os.mkdir("/tmp/jail")
    os.chroot("/tmp/jail")
    print("chroot")
except OSError:
    print("contained")
""",
    ),
    "user_namespaces": (
        "passed",
        _SYSCALL
        + """
flags = (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000)
results = [libc.unshare(flag) for flag in flags]
results += [call(56, flag | 17, 0, 0, 0, 0) for flag in flags]
print("contained" if set(results) == {-1} else results)
""",
    ),
    "forbidden_system_calls": (
        "passed",
        _SYSCALL
        + """
numbers = {"memfd_create": 319, "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240, "bpf": 321, "perf_event_open": 298,
           "keyctl": 250, "add_key": 248, "io_uring_setup": 425, "userfaultfd": 323, "init_module": 175, "reboot": 169,
           "kexec_load": 246, "swapon": 167, "setns": 308, "open_by_handle_at": 304, "fanotify_init": 300, "quotactl": 179,
           "settimeofday": 164, "iopl": 172, "acct": 163, "personality": 135, "setpriority": 141, "memfd_secret": 447}
allowed = [name for name, number in numbers.items() if call(number, 0, 0, 0, 0, 0) != -1]
print(allowed or "contained")
""",
    ),
    "thirty_two_bit_and_x32_calls": (
        "passed runtime_error",  # Docker's filter kills
        _SYSCALL
        + 'print("contained" if call(0x40000000 + 39) == -1 and call(0x40000000 + 272, 0x10000000) == -1 else "x32")',
    ),
    "proc_and_sys_writing": (
        "passed",
        """
import os
got = []
paths = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/1/oom_score_adj",
         "/proc/self/uid_map", "/proc/1/uid_map", "/proc/self/setgroups", "/sys/kernel/uevent_helper"]
paths += [os.path.join(d, f) for d, _, files in os.walk("/sys/fs/cgroup") for f in files][:500]
for path in paths:
    try:
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, b"1")
        got.append(path)
    except OSError:
        pass
print(got or "contained")
""",
    ),
    "device_files": (
        "passed",
        """
import os, stat
got = []
for path in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/vsock", "/dev/tty"):
    try:
        os.open(path, os.O_RDWR)
        got.append(path)
    except OSError:
        pass
for kind, device in ((stat.S_IFBLK, (254, 0)), (stat.S_IFCHR, (1, 1))):
    try:
        os.mknod("/tmp/device", kind | 0o600, os.makedev(*device))
        got.append(device)
    except OSError:
        pass
print(got or "contained")
""",
    ),
    "setuid_programs": (
        "passed",
        """
import os, stat
got = [os.getuid()] if os.getuid() == 0 else []
for directory, _, files in os.walk("/"):
    if directory.startswith(("/proc", "/sys")):
        continue
    for name in files:
        mode = os.lstat(os.path.join(directory, name)).st_mode
        if stat.S_ISREG(mode) and mode & 0o6000:
            got.append(name)
for become in (os.setuid, os.setgid, os.setegid, os.seteuid):
    try:
        become(0)
        got.append(become.__name__)
    except OSError:
        pass
print(got or "contained")
""",
    ),
    "own_binaries": (
        "passed",
        """
import os, shutil, sys
try:
    shutil.copy(sys.executable, "/tmp/python")
    os.chmod("/tmp/python", 0o4755)
    os.execv("/tmp/python", ["python", "-c", "print('ran')"])
except OSError:
    print("contained")
""",
    ),
    "tcp_to_the_host": (
        "passed",
        """
import socket
got = []
for host in ("127.0.0.1", "::1", "10.0.2.2", "172.17.0.1", "169.254.169.254", "8.8.8.8"):
    for port in (CANARY_PORT, 53, 80, 2375):
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        s.settimeout(0.2)
        try:
            s.connect((host, port))
            got.append((host, port))
        except OSError:
            pass
        s.close()
print(got or "contained")
""",
    ),
    "udp_to_the_host": (
        "passed",
        """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for host in ("127.0.0.1", "255.255.255.255", "172.17.0.1"):
    try:
        s.sendto(b"leak", (host, CANARY_PORT))
    except OSError:
        pass
print("contained")
""",
    ),
    "abstract_and_unix_sockets": (
        "passed",
        """
import socket
got = []
for name in ("\\0CANARY_SOCKET", "CANARY_FILE.sock", "/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket"):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(name)
        got.append(name)
    except OSError:
        pass
print(got or "contained")
""",
    ),
    "exotic_sockets": (
        "passed",
        """
import socket
got = []
for family, kind in ((40, 1), (16, 3), (17, 3), (38, 5), (31, 3), (29, 3), (2, 3), (10, 3), (15, 3), (44, 3)):
    try:
        socket.socket(family, kind)
        got.append((family, kind))
    except OSError:
        pass
print(got or "contained")
""",
    ),
}
