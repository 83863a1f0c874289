"""The lessons' notebooks, made from one Markdown source each and executed.

    python -m lessons build [LESSON...]   execute the sources, write the notebooks
    python -m lessons test [LESSON...]    compare the notebooks with the sources, execute them
    python -m lessons check               compare only
    python -m lessons try [LESSON...]     execute only
    python -m lessons checked [LESSON...] execute only, on ranks that are checked
    python -m lessons elsewhere [LESSON...]  run the programs on MPICH and Open MPI

`source` reads a lesson into cells, `notebook` makes of them what Jupyter opens, `execute` runs it and cleans
what came out. The format is described in notebooks/README.md.
"""
