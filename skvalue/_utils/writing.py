"""Files that are written as a whole or not at all."""

import errno
import io
import os
import secrets
import stat
import tempfile
from contextlib import contextmanager, suppress

from .messages import message_of_file
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
            _write(content, file)


def _write(content, file):
    """Write text, bytes, or what a function writes to a file."""
    if callable(content):
        content(file)
    elif isinstance(content, str):
        file.write(content.encode("utf-8"))
    else:
        file.write(content)


def write_results(writers):
    """Write results that took long, see `write_files`.

    If a path cannot be written any more, since its folder is gone or its disk is full,
    they are saved in a new folder for temporary files, and the OSError says where.
    """
    try:
        write_files(writers)
    except OSError as error:
        folder = _saved_elsewhere(writers)
        if folder is None:
            raise
        reason = message_of_file(error) or f"{error}."
        raise OSError(
            f"{reason} What was computed is saved in the folder {folder}."
        ) from error


def _saved_elsewhere(writers):
    """A new folder with the files, or None if it cannot be written."""
    folder = None
    try:
        folder = tempfile.mkdtemp(prefix="skvalue-")
        elsewhere = {}
        for number, (path, content) in enumerate(writers.items()):
            name = os.path.basename(path)
            if os.path.join(folder, name) in elsewhere:
                name = f"{number}-{name}"
            elsewhere[os.path.join(folder, name)] = content
        write_files(elsewhere)
    except OSError:
        if folder is not None:
            os.rmdir(folder)
        return None
    return folder


def write_release(sizes, make):
    """Write a release, and what is said beside it, to files: all of them or none.

    The space is taken before the release is made, which charges a ledger: a full disk
    costs nothing. A release that cannot be written afterwards is printed. Returns the
    text of the release.

    sizes : dict, path -> largest number of bytes of the file
    make : function that makes the release, and returns a list of what the files shall
        hold, as of `write_files`, and a text with all that was released
    """
    text = None
    try:
        with replaced(sizes) as files:
            for file, size in zip(files, sizes.values()):
                file.write(bytes(size))
                file.flush()
                os.fsync(file.fileno())

            contents, text = make()
            for file, content in zip(files, contents):
                buffer = io.BytesIO()
                _write(content, buffer)
                file.seek(0)
                file.write(buffer.getvalue())
                file.truncate()
    except OSError as error:
        outcome = "nothing was released"
        if text is not None:
            outcome = "the release was made and is printed: keep it"
            print(text)
        raise OSError(f"--output could not be written ({error}); {outcome}.") from error
    return text
