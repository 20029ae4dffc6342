"""`python -m service` is the command `wolfstream`."""

from service.cli.main import main

main()
