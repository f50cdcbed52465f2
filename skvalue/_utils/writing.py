"""Files that are written as a whole or not at all."""

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress

from .untrusted import refuse_no_file


@contextmanager
def replaced(paths, mode=0o666):
    """Context that yields one binary file per path; they replace the paths if it ends
    well.

    They are new files of unpredictable names in the folders of the paths, are on the
    disk before the first path changes, and are removed on an error. A file that exists
    keeps its mode, a new one has `mode` without the umask, and symbolic links are
    followed. Raises ValueError if a path is a folder, a pipe or a device.
    """
    final = [os.path.realpath(path) for path in paths]
    parts = [
        os.path.join(os.path.dirname(path), f".{secrets.token_hex(16)}.tmp")
        for path in final
    ]
    files = []
    try:
        for path, part in zip(final, parts):
            files.append(_opened(path, part, mode))
        yield files
        for file in files:
            file.flush()
            os.fsync(file.fileno())
            file.close()
        for path, part in zip(final, parts):
            os.replace(part, path)
    finally:
        for file, part in zip(files, parts):
            with suppress(OSError):  # of what is left in its buffer, on a full disk
                file.close()
            if os.path.exists(part):
                os.remove(part)


def _opened(path, part, mode):
    """The new file `part`, of the mode of the file that it replaces, if there is
    one."""
    refuse_no_file(path, "path")
    exists = os.path.exists(path)
    if exists and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    mode = stat.S_IMODE(os.stat(path).st_mode) if exists else mode
    # An existing file is never opened, whatever it is a link to.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        file = os.fdopen(os.open(part, flags, mode), "wb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    if exists:
        os.chmod(part, mode)  # the umask does not apply
    return file


def write_files(writers, mode=0o666):
    """Write several files, all of them or none, see `replaced`.

    `writers` maps a path to what it shall hold: text, bytes, or a function that writes
    to a binary file.
    """
    with replaced(writers, mode) as files:
        for file, content in zip(files, writers.values()):
            if callable(content):
                content(file)
            else:
                file.write(
                    content.encode("utf-8") if isinstance(content, str) else content
                )
