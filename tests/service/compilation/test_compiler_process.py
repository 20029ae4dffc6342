"""The process that compiles beside a server."""

import os
import subprocess
import sys


def test_it_ends_without_a_word_once_nobody_reads_what_it_reports():
    """The server that started it was killed, say, and started again with the same log."""
    reader, writer = os.pipe()
    os.close(reader)
    program = (
        "from wolfstream.service.compilation.compiler_process import report; "
        "report('a part'); print('went on')"
    )
    with os.fdopen(writer, "wb") as closed:
        command = [sys.executable, "-c", program]
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
