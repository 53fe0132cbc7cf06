"""From files of text to batches: readers, cleaning, the doctor, the store, the phrasebook."""
