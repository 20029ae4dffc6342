"""`python -m wolfstream` is the command `wolfstream`."""

from wolfstream.service.cli.main import main

main(prog_name="wolfstream")
