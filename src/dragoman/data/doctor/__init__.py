"""The doctor says what is wrong with a corpus before anything is trained on it.

`examination` is the entry; `corpus_scan` reads the corpus once, `misalignment` finds where two
files diverge, and `diagnosis` holds the findings.
"""
