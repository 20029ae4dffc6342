"""`python -m wolfstream` is the command `wolfstream`."""

from service.cli.main import main

main(prog_name="wolfstream")
