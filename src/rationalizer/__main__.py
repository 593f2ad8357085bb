"""`python -m rationalizer`, the same as the command `rationalizer`."""

from rationalizer.cli import main

if __name__ == "__main__":
    main()
