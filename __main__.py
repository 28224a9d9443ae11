"""`python -m voxgate`: the same as the `voxgate` command."""

from .gateway.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
