"""The paper's figures, tables and theorems, one file each: claim, config, run, verdict rule, figures as data."""
