"""What only maintainers run, from a checkout."""
