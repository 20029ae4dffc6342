"""`python -m service` is the command `wolfstream`."""

from service.cli import main

main()
