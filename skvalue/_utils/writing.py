"""Files that are written as a whole or not at all."""

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress

from .untrusted import refuse_no_file


@contextmanager
def replaced(paths, mode=0o666):
    """Context that yields a binary file for each path, to replace it at the end.

    If the context ends without an error, the files replace the paths. They are new
    files of unpredictable names in the folders of the paths, are on the disk before the
    first path changes, and are removed on an error. A file that exists keeps
    its mode, a new one has `mode` without the umask, and symbolic links are followed.
    Raises ValueError if a path is a folder, a pipe or a device.
    """
    # Behind symbolic links.
    targets = [os.path.realpath(path) for path in paths]
    temporaries = [
        os.path.join(os.path.dirname(target), f".{secrets.token_hex(16)}.tmp")
        for target in targets
    ]
    files = []
    try:
        for target, temporary in zip(targets, temporaries):
            files.append(_open_temporary(target, temporary, mode))
        yield files
        for file in files:
            file.flush()
            os.fsync(file.fileno())
            file.close()
        for target, temporary in zip(targets, temporaries):
            os.replace(temporary, target)
    finally:
        for file, temporary in zip(files, temporaries):
            with suppress(OSError):  # of what is left in its buffer, on a full disk
                file.close()
            if os.path.exists(temporary):
                os.remove(temporary)


def _open_temporary(target, temporary, mode):
    """A new file, of the mode of the file that it replaces, if there is one."""
    refuse_no_file(target, "path")
    exists = os.path.exists(target)
    if exists:
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
        mode = stat.S_IMODE(os.stat(target).st_mode)
    # An existing file is never opened, whatever it is a link to.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        file = os.fdopen(os.open(temporary, flags, mode), "wb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from None
    if exists:
        os.chmod(temporary, mode)  # the umask does not apply
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
            elif isinstance(content, str):
                file.write(content.encode("utf-8"))
            else:
                file.write(content)
