"""The documents' reference, written from the code: what is declared once is described there."""
