"""What our programs need of libbpf, through ctypes: libbpf.so.1, or libbpf.so.0 of older distributions.

Nothing is pinned and no file is made: maps, program and attachment are file descriptors of this process,
which the kernel closes when the process ends, however it ends; with its attachment a program is detached.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import itertools
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from switch.errors import BpfFailed, BpfUnavailable

LIBRARIES = ("libbpf.so.1", "libbpf.so.0")
INSTALL = "apt-get install libbpf1 (libbpf0 on Debian 11 and Ubuntu 20.04 to 22.04)"
OLDEST_KERNEL = (5, 9)
"""XDP programs attached by BPF links (BPF_LINK_CREATE)."""
ACCOUNTS_MEMORY = (5, 11)
"""From here on, BPF memory counts in the control group; before, against RLIMIT_MEMLOCK."""
MAP_TYPE_ARRAY = 2
ATTACH_TYPE_XDP = 37
ATTACH_TYPE_STRUCT_OPS = 44
STRUCT_OPS_LINK = 1 << 13
"""BPF_F_LINK of <linux/bpf.h>: what is registered goes with the link that registers it."""
LINKS_STRUCT_OPS = (1, 2)
"""From this libbpf on, attaching makes the link by itself."""
XDP_FLAGS = {"generic": 2, "native": 4}
"""XDP_FLAGS_SKB_MODE and XDP_FLAGS_DRV_MODE of <linux/if_link.h>."""
ANY, NO_EXIST = 0, 1
"""BPF_ANY and BPF_NOEXIST of <linux/bpf.h>."""

_REFILLS, _REFILL_S = 100, 0.01
"""A second in all, for a machine that is busy."""

_INT, _U32, _U64 = ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64
_POINTER, _STRING, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_SIGNATURES: dict[str, tuple[type, tuple[type, ...]]] = {
    "libbpf_get_error": (ctypes.c_long, (_POINTER,)),
    "libbpf_num_possible_cpus": (_INT, ()),
    "bpf_object__open_mem": (_POINTER, (_STRING, _SIZE, _POINTER)),
    "bpf_object__load": (_INT, (_POINTER,)),
    "bpf_object__close": (_INT, (_POINTER,)),
    "bpf_object__find_map_fd_by_name": (_INT, (_POINTER, _STRING)),
    "bpf_object__find_program_by_name": (_POINTER, (_POINTER, _STRING)),
    "bpf_object__find_map_by_name": (_POINTER, (_POINTER, _STRING)),
    "bpf_map__fd": (_INT, (_POINTER,)),
    "bpf_map__set_map_flags": (_INT, (_POINTER, _U32)),
    "bpf_map__attach_struct_ops": (_POINTER, (_POINTER,)),
    "bpf_program__fd": (_INT, (_POINTER,)),
    "bpf_link__fd": (_INT, (_POINTER,)),
    "bpf_link_create": (_INT, (_INT, _INT, _INT, _POINTER)),
    "bpf_map_update_elem": (_INT, (_INT, _STRING, _POINTER, _U64)),
    "bpf_map_lookup_elem": (_INT, (_INT, _STRING, _POINTER)),
    "bpf_map_delete_elem": (_INT, (_INT, _STRING)),
}


class _LinkOptions(ctypes.Structure):
    """The head of `struct bpf_link_create_opts`; libbpf takes the rest as zero."""

    _fields_ = (("size", _SIZE), ("flags", _U32))


@functools.cache
def library() -> ctypes.CDLL:
    """Return libbpf.

    Raises:
        BpfUnavailable: it is not installed, or it or the kernel is too old.
    """
    release = platform.release()
    if _kernel_version(release) < OLDEST_KERNEL:
        needed = ".".join(str(part) for part in OLDEST_KERNEL)
        raise BpfUnavailable(f"Linux {release} has no BPF links for XDP", f"use Linux {needed} or later")
    loaded = _open_library()
    try:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as missing:
        raise BpfUnavailable(f"this libbpf is too old ({missing})", INSTALL) from None
    # Its complaints on standard error would be ours a second time; errno says what failed.
    loaded.libbpf_set_print.restype = _POINTER
    loaded.libbpf_set_print(None)
    return loaded


class BpfObject:
    """A compiled object, loaded into the kernel.

    Args:
        path: the object file.
        renamed: text of it that is replaced by another of the same length.
        struct_ops: its tables of functions that the kernel may call, all of them.

    Raises:
        BpfUnavailable: the file or libbpf is not there, there is no right to load programs, or the kernel
            knows no BPF.
        BpfFailed: the kernel refuses this object.
    """

    def __init__(
        self, path: Path, renamed: Mapping[bytes, bytes] | None = None, struct_ops: Sequence[str] = ()
    ) -> None:
        compiled = _read(path)
        for old, new in (renamed or {}).items():
            compiled = compiled.replace(old, new)
        self._library = library()
        self._object = self._library.bpf_object__open_mem(compiled, len(compiled), None)
        self._require_pointer(self._object, f"reading {path.name}")
        try:
            _allow_memory()
            for name in struct_ops:
                flagged = self._library.bpf_map__set_map_flags(self._table(name), STRUCT_OPS_LINK)
                _checked(flagged, f"preparing {name}")
            self._load(path.name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of program and maps. Does nothing the second time."""
        held, self._object = self._object, None
        if held is not None:
            self._library.bpf_object__close(held)

    def map(self, name: str) -> int:
        """Return the descriptor of a map, which is the object's own."""
        descriptor = self._library.bpf_object__find_map_fd_by_name(self._object, name.encode())
        return _checked(descriptor, f"finding the map {name}")

    def program(self, name: str) -> int:
        """Return the descriptor of a program, which is the object's own."""
        pointer = self._library.bpf_object__find_program_by_name(self._object, name.encode())
        self._require_pointer(pointer, f"finding the program {name}")
        return _checked(self._library.bpf_program__fd(pointer), f"opening the program {name}")

    def attach_xdp(self, program: str, interface_index: int, mode: str) -> int:
        """Attach a program to an interface and return the descriptor that holds it there.

        Args:
            program: its name.
            interface_index: of an interface of this network namespace.
            mode: `native` or `generic`.

        Raises:
            BpfFailed: with the kernel's reason in `number`.
        """
        descriptor = self.program(program)
        options = _LinkOptions(ctypes.sizeof(_LinkOptions), XDP_FLAGS[mode])
        link = self._library.bpf_link_create(
            descriptor, interface_index, ATTACH_TYPE_XDP, ctypes.byref(options)
        )
        return _checked(link, f"attaching {program} in {mode} mode")

    def register(self, name: str) -> int:
        """Register a table of functions, and return the descriptor that holds it registered.

        Raises:
            BpfFailed: as EEXIST where the kernel has one of its name.
        """
        table = self._table(name)
        attached = self._library.bpf_map__attach_struct_ops(table)
        self._require_pointer(attached, f"registering {name}")
        if _library_version(self._library) >= LINKS_STRUCT_OPS:
            return _checked(self._library.bpf_link__fd(attached), f"registering {name}")
        descriptor = self._library.bpf_map__fd(table)
        link = self._library.bpf_link_create(descriptor, 0, ATTACH_TYPE_STRUCT_OPS, None)
        return _checked(link, f"registering {name}")

    def _table(self, name: str) -> int:
        table: int | None = self._library.bpf_object__find_map_by_name(self._object, name.encode())
        self._require_pointer(table, f"finding {name}")
        assert table is not None
        return table

    def _load(self, name: str) -> None:
        try:
            _checked(self._library.bpf_object__load(self._object), f"loading {name}")
        except BpfFailed as failure:
            if failure.number == errno.EPERM:
                raise BpfUnavailable("this user may not load BPF programs", "run it with sudo") from None
            if failure.number == errno.ENOSYS:
                raise BpfUnavailable(
                    "this kernel has no BPF", "use one with CONFIG_BPF_SYSCALL and CONFIG_XDP_SOCKETS"
                ) from None
            raise

    def _require_pointer(self, pointer: int | None, what: str) -> None:
        # libbpf 0 returns the error as a pointer, libbpf 1 in errno.
        error = self._library.libbpf_get_error(pointer)
        if error or not pointer:
            raise BpfFailed(what, -error or ctypes.get_errno())


def create_array(key_bytes: int, value: bytes) -> int:
    """Make an array map that holds one value, and return its descriptor, which the caller closes."""
    loaded = library()
    if hasattr(loaded, "bpf_map_create"):
        descriptor = loaded.bpf_map_create(MAP_TYPE_ARRAY, None, key_bytes, len(value), 1, None)
    else:
        descriptor = loaded.bpf_create_map(MAP_TYPE_ARRAY, key_bytes, len(value), 1, 0)
    made = _checked(descriptor, "making a map")
    try:
        update(made, bytes(key_bytes), value)
    except BaseException:
        os.close(made)
        raise
    return made


def update(descriptor: int, key: bytes, value: bytes, flags: int = ANY) -> None:
    """Set a map's value, in one step for the programs that read it.

    Raises:
        BpfFailed: as EEXIST where `flags` is NO_EXIST and the key is there, E2BIG where the map is full.
    """
    for attempt in itertools.count(1):
        try:
            _checked(library().bpf_map_update_elem(descriptor, key, value, flags), "writing into a map")
            return
        except BpfFailed as error:
            # The kernel keeps a few elements ready, and makes others when it comes to it.
            if error.number != errno.ENOMEM or attempt == _REFILLS:
                raise
        time.sleep(_REFILL_S)


def cpu_count() -> int:
    """Return how many CPUs the kernel could have: a per-CPU map has a value for each."""
    return _checked(library().libbpf_num_possible_cpus(), "counting the CPUs")


def look_up_each_cpu(descriptor: int, key: bytes, value_bytes: int) -> bytes:
    """Return the values of a per-CPU map, one after the other.

    Args:
        descriptor: of a per-CPU map.
        key: what to look up.
        value_bytes: size of one CPU's value, a multiple of 8.

    Raises:
        BpfFailed: as ENOENT where the key is not there.
    """
    return look_up(descriptor, key, value_bytes * cpu_count())


def look_up(descriptor: int, key: bytes, value_bytes: int) -> bytes:
    """Return the value of a map; BpfFailed, as ENOENT, where the key is not there."""
    values = ctypes.create_string_buffer(value_bytes)
    _checked(library().bpf_map_lookup_elem(descriptor, key, values), "reading a map")
    return values.raw


def delete(descriptor: int, key: bytes) -> None:
    """Take a key out of a map; one that is not there is no error."""
    try:
        _checked(library().bpf_map_delete_elem(descriptor, key), "deleting from a map")
    except BpfFailed as failure:
        if failure.number != errno.ENOENT:
            raise


def _read(path: Path) -> bytes:
    if sys.byteorder != "little":
        raise BpfUnavailable("the compiled BPF programs are for little-endian machines", "use such a machine")
    try:
        return path.read_bytes()
    except OSError as failure:
        remedy = "build it: python -m switch.bpf.build"
        raise BpfUnavailable(f"{path} cannot be read ({failure.strerror})", remedy) from None


def _open_library() -> ctypes.CDLL:
    for name in LIBRARIES:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name, use_errno=True)
    raise BpfUnavailable("libbpf is not installed", INSTALL)


def _library_version(loaded: ctypes.CDLL) -> tuple[int, int]:
    if not hasattr(loaded, "libbpf_major_version"):  # before 0.6
        return 0, 0
    return loaded.libbpf_major_version(), loaded.libbpf_minor_version()


def _kernel_version(release: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _allow_memory() -> None:
    if _kernel_version(platform.release()) < ACCOUNTS_MEMORY:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        # Who may not raise it may not load programs either, and is told so by the kernel.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_MEMLOCK, unlimited)


def _checked(result: int, what: str) -> int:
    # libbpf 0 returns -1 from its system calls, and the error in errno; all else is the negative error.
    if result < 0:
        raise BpfFailed(what, ctypes.get_errno() or -result if result == -1 else -result)
    return result
