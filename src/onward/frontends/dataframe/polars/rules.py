"""All rules for expressions of Polars: to import this is to register them."""

from onward.frontends.dataframe.polars import (  # noqa: F401
    aggregate,
    arithmetic,
    casts,
    choose,
    compare,
    horizontal,
    leaves,
    selection,
    sequence,
    texts,
    times,
)
