"""Price books: what one unit of a model or machine costs, with its source and the date it was looked up.

A book is the union of the TOML files that name it, so that providers stay one file each:

```toml
book = "list"
extends = "…"                  # optional: takes over what this book does not price itself
provider = "voyage"
[[price]]
item = "rerank-2.5"
unit = "input_tokens"
price = 0.05
per = 1_000_000
currency = "USD"
valid_from = 2025-08-11        # optional
source = "https://…"
looked_up = 2025-11-12
confirmed = true
note = ""                      # optional
provider = "…"                 # optional: another one than the file's
```

Custom books are in the folder given by ``CLQ_PRICES``, otherwise in "price-books" beside the store.
"""

from core.prices.book import (
    CURRENCY,
    DEFAULT_BOOK,
    MS_PER_HOUR,
    PRICE_FRAME,
    PRICED_AS,
    UNITS,
    Price,
    PriceBook,
)
from core.prices.write import PRICE_IT, check_name, load_books, own_files, own_folder

__all__ = [
    "CURRENCY",
    "DEFAULT_BOOK",
    "MS_PER_HOUR",
    "PRICED_AS",
    "PRICE_FRAME",
    "PRICE_IT",
    "UNITS",
    "Price",
    "PriceBook",
    "check_name",
    "load_books",
    "own_files",
    "own_folder",
]
