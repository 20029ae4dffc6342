"""`python -m wolfstream.service` is the command `wolfstream`."""

from wolfstream.service.cli.main import main

main()
