"""The frames of the battery, made from a seed: each as a sample, as edge cases, as one row and as none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

Columns = dict[str, tuple[str, Sequence[Any], Sequence[Any]]]
"""A column's dtype, the values of the sample, and edge cases."""

VARIANTS = ("sample", "edge", "one", "none")
ROWS = 40
EDGES = 12
NAN, INF = float("nan"), float("inf")
INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
TIME = "datetime64[us]"
OLD_TIMES = [
    "1969-12-31 23:59:59.999999",
    "1970-01-01",
    None,
    "2000-02-29 12:30:00",
    "1900-02-28 23:00:00",
    "1900-03-01",
    "2024-02-29 23:59:59.000001",
    "2023-12-31 00:00:01",
    "2099-12-31",
    None,
    "1960-02-29 06:07:08",
    "2024-03-31 10:00:00",
]
TEXTS = ["", None, "Ünïcode ß", "  padded ", "汽车", "UPPER", "lower", "a,b;c", "x\ty", "😀 smile", "0", "nan"]


class Drawn:
    """Draws the values of a sample."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def ints(self, low: int, high: int) -> list[int]:
        return [int(x) for x in self.rng.integers(low, high, ROWS)]

    def floats(self, low: float, high: float, digits: int = 2, missing: float = 0.0) -> list[float]:
        values = np.round(self.rng.uniform(low, high, ROWS), digits)
        return [NAN if gone else float(x) for x, gone in zip(values, self.rng.random(ROWS) < missing, strict=True)]

    def amounts(self, middle: float, missing: float = 0.0) -> list[float]:
        values = np.round(middle * np.exp(self.rng.normal(0, 0.6, ROWS)), 2)
        return [NAN if gone else float(x) for x, gone in zip(values, self.rng.random(ROWS) < missing, strict=True)]

    def of(self, choices: Sequence[Any], missing: float = 0.0) -> list[Any]:
        picked = self.rng.integers(0, len(choices), ROWS)
        return [None if gone else choices[i] for i, gone in zip(picked, self.rng.random(ROWS) < missing, strict=True)]

    def bools(self, missing: float = 0.0) -> list[Any]:
        return self.of([True, False], missing)

    def times(self, start: str, end: str, missing: float = 0.0) -> list[Any]:
        low, high = (int(pd.Timestamp(text).timestamp()) for text in (start, end))
        seconds = self.rng.integers(low, high, ROWS)
        gone = self.rng.random(ROWS) < missing
        return [None if g else pd.Timestamp(int(s), unit="s") for s, g in zip(seconds, gone, strict=True)]


def loans() -> Columns:
    d = Drawn(1)
    return {
        "id": ("int64", range(1000, 1000 + ROWS), [INT64.min, INT64.max, 0, -1, 1, 2, 3, 4, 5, 6, 7, 8]),
        "age": ("float64", d.floats(18, 80, 0, 0.1), [NAN, 0, 120, 17.5, -1, 25, 40, 65, 200, NAN, 33, 18]),
        "income": (
            "float64",
            d.amounts(42000, 0.1),
            [0, -0.0, INF, NAN, 1e-9, 1e15, 1, 52000.5, -2000, 30000, NAN, 99999.99],
        ),
        "loan": ("float64", d.amounts(9000), [0, 5000, 1e12, 2500, 1, 100.01, NAN, -10, 3000, 7000, 1, 0.005]),
        "term": ("int64", d.of([12, 24, 36, 60]), [0, 12, -36, 2**31, 36, 60, 1, 24, 24, 36, 7, 12]),
        "rate": ("float64", d.floats(3, 25), [0, NAN, 100, -1, 3.5, 7.25, 12, 12, 15.005, 24.99, 5, 0.1]),
        "score": ("int32", d.ints(300, 850), [INT32.min, INT32.max, 0, 300, 850, 580, 670, 740, 800, -5, 579, 669]),
        "late": ("int64", d.of([0, 0, 0, 1, 2, 5]), [0, 1, 2, 3, 4, 5, 6, -1, 1000, 0, 0, 1]),
        "grade": ("str", d.of(list("ABCDE"), 0.1), ["A", "", None, "H", "a", "é", " A ", "B", "C", "D", None, "AA"]),
        "purpose": (
            "str",
            d.of(["car", "home", "debt consolidation", "small_business", "Other"], 0.05),
            ["car", None, "", "汽车", "CAR ", "home", "boat", "debt consolidation", "a b c", "Home", "_", "other"],
        ),
        "employed": ("bool", d.bools(), [True, False] * 6),
        "applied": (TIME, d.times("2019-01-01", "2024-12-31", 0.05), OLD_TIMES),
        "region": (
            "north|south|east|west",
            d.of(["north", "south", "east"], 0.1),
            ["west", None, "north", "north", "east", "south", None, None, "west", "west", "south", "east"],
        ),
        "dependents": ("Int64", d.of([0, 1, 2, 3], 0.1), [None, 0, -1, 10, 1, None, 2, 3, 4, 0, 0, 100]),
        "verified": (
            "boolean",
            d.bools(0.1),
            [None, True, False, None, True, True, False, True, None, None, False, True],
        ),
        "employer": ("string", d.of(["Acme Inc", "Globex", "Initech LLC", ""], 0.1), TEXTS),
        "used": ("float32", d.floats(0, 1), [0, 1, NAN, INF, -INF, 0.1, 0.5, 1e30, 1e-30, 0.25, -0.75, 2]),
    }


def customers() -> Columns:
    d = Drawn(2)
    names = ["Anna Smith", "Bob Lee", "Chen Wei", "Dora van Dyk", "Eve O'Neil", "Farid Khan"]
    mails = ["anna.smith@mail.com", "bob@Example.org", "chen.wei@mail.com", "dora@shop.co.uk", "eve_99@mail.com"]
    return {
        "customer_id": ("int64", range(1, ROWS + 1), [INT64.max, INT64.min, 0, -7, 1, 2, 3, 4, 5, 6, 7, 8]),
        "name": (
            "str",
            d.of(names),
            [
                "",
                None,
                "Zoë Ångström",
                "Mononym",
                "A B C D",
                " Lead",
                "Trail ",
                "two  spaces",
                "李 小龙",
                "X",
                "ann lee",
                "-",
            ],
        ),
        "email": (
            "str",
            d.of(mails, 0.1),
            [
                None,
                "",
                "no-at-sign",
                "a@b",
                "@",
                "a@@b.com",
                "x.y@MAIL.COM",
                "q@mail.com",
                "é@é.fr",
                "a@b.c.d",
                " ",
                "w@x.y",
            ],
        ),
        "city": (
            "str",
            d.of(["Paris", "Berlin", "Oslo", "New York"], 0.05),
            [*TEXTS[:8], "Paris", "Oslo", "paris", "Rome"],
        ),
        "country": (
            "FR|DE|NO|US|JP",
            d.of(["FR", "DE", "NO", "US"]),
            ["JP", None, "FR", "FR", "US", None, "DE", "NO", "JP", "JP", "US", "DE"],
        ),
        "plan": (
            "free<basic<pro",
            d.of(["free", "basic", "pro"], 0.05),
            ["free", None, "pro", "pro", "basic", "free", None, "pro", "basic", "free", "pro", "free"],
        ),
        "birth": (TIME, d.times("1941-01-01", "2004-12-31", 0.05), OLD_TIMES),
        "signup": (TIME, d.times("2020-01-01", "2023-12-31"), [OLD_TIMES[i] or "2022-02-28" for i in range(EDGES)]),
        "last_seen": (TIME, d.times("2024-01-01", "2024-06-30", 0.2), OLD_TIMES[::-1]),
        "spend": ("float64", d.amounts(120, 0.15), [NAN, 0, -5, 1e9, NAN, 0.01, INF, -0.0, 100, 100, 99.995, NAN]),
        "visits": ("int64", d.ints(0, 50), [0, 0, 1, -3, 10**12, 5, 10, 20, 49, 50, 51, 7]),
        "tickets": ("Int64", d.of([0, 0, 1, 2, 7], 0.2), [None, None, 0, 1, -1, 10**15, 2, 3, None, 5, 6, 7]),
        "churned": ("bool", d.bools(), [False, True, True] * 4),
        "phone": (
            "str",
            d.of(["+49 171 1234567", "0171-555-01", "(212) 555 0100"], 0.1),
            ["", None, "+", "123", "call me", "00 33 1", "+1 (212) 555-0100", "٣", "5%", " ", "0", "++"],
        ),
        "note": ("string", d.of(["vip", "Late payer", "", "asked for refund", "VIP  again"], 0.2), TEXTS),
    }


def orders() -> Columns:
    d = Drawn(3)
    days = ["2024-02-29", "2023-12-31", "2024-01-01", "2021-07-14", "1999-11-05"]
    return {
        "order_id": ("int64", range(1, ROWS + 1), range(EDGES)),
        "customer_id": ("int64", d.ints(1, 9), [1, 1, 1, 2, 2, -1, 0, 99, 99, 3, INT64.max, INT64.min]),
        "product": (
            "str",
            d.of(["lamp", "desk", "chair", "sofa"]),
            ["lamp", "", None, "Lamp", "desk", "desk", "sofa", "沙发", None, "chair", "", "lamp "],
        ),
        "qty": ("int64", d.ints(1, 12), [0, 1, -2, 3, 3, 3, 10**9, 7, 8, 9, 10, 11]),
        "price": ("float64", d.amounts(60), [0, NAN, 1e9, 9.99, 9.99, 0.005, -3, 20, INF, 50, 100, NAN]),
        "discount": ("float64", d.of([0.0, 0.1, 0.25, NAN]), [NAN, NAN, 0, 1, 0.5, -0.1, 0.1, 0.2, 0.3, NAN, 0.25, 2]),
        "channel": ("str", d.of(["web", "store", "phone"], 0.1), ["web", None, "", "fax", "WEB", "store"] * 2),
        "status": (
            "open|paid|shipped|returned",
            d.of(["open", "paid", "shipped"]),
            ["returned", None, "open", "paid", "paid", "shipped", None, "open", "open", "returned", "paid", "open"],
        ),
        "ordered": (TIME, d.times("2023-01-01", "2024-12-31"), [t or "2024-02-29" for t in OLD_TIMES]),
        "shipped": (TIME, d.times("2023-01-03", "2025-01-31", 0.2), OLD_TIMES[::-1]),
        "day": (
            "str",
            d.of(days, 0.05),
            ["2024-02-29", "2000-02-29", None, "1900-03-01", "1969-12-31", "1970-01-01", "2023-01-31", *days],
        ),
        "amount": (
            "str",
            d.of(["12.50", "7", "100", "0.99", "-3"]),
            ["abc", "", None, "1,234", "5%", "0x1A", " 7 ", "1e3", "-3.5", "12.50", ".5", "1_000"],
        ),
        "sku": (
            "str",
            d.of(["AB-123-X", "CD-9-Y", "EF-45-Z", "AB-7-Y"]),
            ["", None, "AB", "AB-1", "AB-1-X-9", "--", "ab-12-x", "ÄÖ-5-Ü", "AB-123-X", "CD-x-Y", "-", "CD-9-Y "],
        ),
        "returned": ("boolean", d.bools(0.15), [None, None, True, False] * 3),
    }


def sensors() -> Columns:
    d = Drawn(4)
    start = pd.Timestamp("2024-02-28 22:10:00")
    hours = [pd.Timedelta(seconds=s) for s in d.ints(0, 200_000)]
    return {
        "device": (
            "str",
            d.of(["a1", "a2", "b1"]),
            ["a1", "a1", None, "", "z9", "a2", "a1", "z9", "é", None, "b1", "a1"],
        ),
        "at": (TIME, [start + pd.Timedelta(minutes=37 * i) for i in range(ROWS)], OLD_TIMES),
        "temp": ("float64", d.floats(-5, 35, 1, 0.15), [NAN, NAN, INF, -INF, -0.0, 0, 21.5, 21.5, 1e5, NAN, -40, 35]),
        "humidity": ("float64", d.floats(0, 100, 1, 0.1), [0, 100, NAN, 50, 50, 50, NAN, NAN, 101, -1, 33.3, 66.7]),
        "pressure": ("float32", d.floats(980, 1040, 1), [0, 1e30, NAN, 1013.25, 1000, -INF, 980, 1040, 1, 2, 3, 4]),
        "count": ("int64", d.ints(0, 1000), [0, 0, -1, 10**12, 5, 5, 5, 7, 3, 2, 1, 999]),
        "level": ("uint8", d.ints(0, 256), [0, 255, 1, 2, 3, 4, 128, 127, 254, 7, 8, 9]),
        "code": ("int16", d.ints(-300, 300), [-32768, 32767, 0, 1, -1, 5, 6, 7, 8, 9, 10, 11]),
        "ok": ("bool", d.bools(), [True] * 6 + [False] * 6),
        "mode": ("off|eco|full", d.of(["off", "eco", "full"]), ["off", None, "eco", "full"] * 3),
        "uptime": (
            "timedelta64[us]",
            hours,
            [None, 0, 1, -1, 86_400_000_000, -86_400_000_001, 3_600_000_000, 5, 10**15, 7, None, 60_000_000],
        ),
        "fault": ("Int64", d.of([0, 1, 404], 0.3), [None] * EDGES),
    }


def logs() -> Columns:
    d = Drawn(5)
    paths = ["/", "/shop/item/42?ref=mail", "/shop/cart", "/api/v2/users/7", "/static/app.js", "/Shop/Item/7"]
    agents = ["Mozilla/5.0 (Windows NT 10.0)", "curl/8.4.0", "Googlebot/2.1", "Mozilla/5.0 (iPhone; CPU)"]
    return {
        "ip": (
            "str",
            d.of(["10.0.0.1", "192.168.1.77", "8.8.8.8"]),
            ["", None, "::1", "1.2.3", "300.1.1.1", "10.0.0.1"] * 2,
        ),
        "at": (TIME, sorted(d.times("2024-02-27", "2024-03-03")), [t or "2024-02-29 01:02:03" for t in OLD_TIMES]),
        "method": ("GET|POST|PUT", d.of(["GET", "POST"]), ["PUT", None, "GET", "POST", "GET", None] * 2),
        "path": (
            "str",
            d.of(paths),
            ["", None, "?", "//", "/é/ü", "/shop", "no-slash", "/a?b=1&c=2", "/A/B/C/D", "/shop/item/x", "/ ", "/1"],
        ),
        "status": (
            "int64",
            d.of([200, 200, 301, 404, 500]),
            [0, -1, 199, 200, 299, 300, 399, 400, 499, 500, 599, 10**9],
        ),
        "size": (
            "Int64",
            d.of([512, 2048, 100_000, 0], 0.1),
            [None, 0, 1, -1, 2**40, None, 7, 8, 1024, 1023, 1025, None],
        ),
        "took": ("float64", d.amounts(0.2, 0.05), [0, NAN, 1e-6, 30, 0.5, 0.25, INF, -1, NAN, 1, 0.1, 2]),
        "agent": (
            "str",
            d.of(agents, 0.05),
            ["", None, "Bot", "bot", "CURL", "Mozilla/", "x" * 300, "/", "a b", "日本", "-", "curl/"],
        ),
        "referrer": ("str", d.of(["https://a.com/x", "http://b.org", "-"], 0.3), [None] * EDGES),
        "user": (
            "str",
            d.of(["u1", "u2", "u3", "u4"], 0.2),
            ["u1", None, "", "u9", "u1", "u1", None, "U1", "u2", "ü", "u2", "u3"],
        ),
        "pairs": (
            "str",
            d.of(["a=1;b=2", "a=5;b=0", "a=10;b=7"]),
            ["a=1;b=2", "a=;b=", "", None, "a=1", "x=1;y=2"] * 2,
        ),
    }


def titanic() -> Columns:
    d = Drawn(6)
    names = ["Braund, Mr. Owen Harris", "Cumings, Mrs. John Bradley", "Heikkinen, Miss. Laina", "Rice, Master. Eugene"]
    return {
        "PassengerId": ("int64", range(1, ROWS + 1), range(EDGES)),
        "Survived": ("int64", d.ints(0, 2), [0, 1] * 6),
        "Pclass": ("int64", d.ints(1, 4), [1, 2, 3, 0, 4, 1, 2, 3, 3, 3, 2, 1]),
        "Name": (
            "str",
            [*names, *d.of(names)[4:]],
            [*names, "Smith, Col. A", "no title", "", None, "O'Dwyer, Rev. É", ", .", "X, Mr. Y. Z", "a, Dr. b"],
        ),
        "Sex": ("str", d.of(["male", "female"]), ["male", "female", None, "", "Male", "other"] * 2),
        "Age": ("float64", d.floats(1, 70, 0, 0.2), [NAN, 0.42, 0, 80, 16, 32, 48, 64, NAN, 100, -1, 5]),
        "SibSp": ("int64", d.ints(0, 4), [0, 0, 1, 2, 8, 0, 0, 1, 0, 3, 0, 1]),
        "Parch": ("int64", d.ints(0, 3), [0, 1, 0, 6, 0, 0, 2, 1, 0, 0, 9, 0]),
        "Ticket": (
            "str",
            d.of(["A/5 21171", "PC 17599", "113803", "STON/O2. 3101282"]),
            ["", None, "LINE", "1", "A B 2", "PC 1"] * 2,
        ),
        "Fare": ("float64", d.amounts(20, 0.05), [0, NAN, 512.3292, 7.91, 14.454, 31, 31.01, 8, -1, 1, 2, NAN]),
        "Cabin": ("str", d.of(["C85", "E46", "B57 B59"], 0.6), [None, "", "T", "C23 C25 C27", "F G73", "g6"] * 2),
        "Embarked": ("str", d.of(list("SCQ"), 0.05), ["S", "C", "Q", None, "", "X"] * 2),
    }


def houses() -> Columns:
    d = Drawn(7)
    years = d.ints(1900, 2008)
    return {
        "Id": ("int64", range(1, ROWS + 1), range(EDGES)),
        "LotArea": ("int64", d.ints(1500, 20000), [0, 1, -1, 10**6, 215245, 5000, 5001, 7, 8, 9, 10, 11]),
        "LotFrontage": ("float64", d.floats(20, 120, 0, 0.2), [NAN, 0, 313, NAN, NAN, 60, 70, 80, 1, 2, 3, 4]),
        "Neighborhood": (
            "str",
            d.of(["NAmes", "CollgCr", "OldTown"]),
            ["NAmes", "", None, "Veenker", "OldTown", "NAmes"] * 2,
        ),
        "OverallQual": ("int64", d.ints(1, 11), [1, 10, 0, 11, 5, 5, 6, 7, 8, 9, 2, 3]),
        "ExterQual": ("str", d.of(["Ex", "Gd", "TA", "Fa"]), ["Ex", "Po", None, "", "gd", "TA"] * 2),
        "BsmtQual": ("str", d.of(["Ex", "Gd", "TA"], 0.2), [None, None, "NA", "", "Fa", "Ex"] * 2),
        "YearBuilt": ("int64", years, [1872, 2010, 1900, 1999, 2000, 2001, 1950, 1960, 0, 9999, 1970, 1969]),
        "YrSold": ("int64", d.ints(2006, 2011), [2006, 2010, 2007, 2008, 2000, 2001, 1949, 2009, 1, 9999, 2010, 2010]),
        "GrLivArea": ("float64", d.floats(600, 3000, 0), [0, NAN, 5642, 334, 1000, 1000, 1500, 2000, -1, 1, 2, 3]),
        "TotalBsmtSF": ("float64", d.floats(0, 2000, 0, 0.1), [0, NAN, 6110, 0, 0, 1, 2, 3, 4, NAN, 5, 6]),
        "GarageArea": ("float64", d.floats(0, 900, 0, 0.1), [0, 0, 0, NAN, 1418, 1, 2, 3, 4, 5, 6, 7]),
        "FullBath": ("int64", d.ints(1, 4), [0, 1, 2, 3] * 3),
        "HalfBath": ("int64", d.ints(0, 3), [0, 1, 2, 0] * 3),
        "CentralAir": ("str", d.of(["Y", "N"]), ["Y", "N", None, "", "y", "?"] * 2),
        "SalePrice": ("float64", d.amounts(180000), [0, NAN, 755000, 34900, 1, -1, 2, 1e9, 163000, 163000, 5, 6]),
    }


def odds() -> Columns:
    """Columns of unusual names and dtypes."""
    d = Drawn(8)
    return {
        "count": ("int64", d.ints(0, 5), [0, 1, 2, 3, 4, 0, 0, -1, 7, 2, 2, 10**10]),
        "size": ("float64", d.floats(-9, 9, 1, 0.1), [NAN, 0.5, 1.5, 2.5, -0.5, -1.5, -0.0, 0, INF, -INF, NAN, 1e300]),
        "index": ("int64", d.ints(-5, 5), [5, 4, 3, 3, 3, 2, 1, 0, -1, -2, 0, 9]),
        "name": ("str", d.of(["ann", "bob", "cy"], 0.1), ["ann", None, "", "Bob", "bob", "cy"] * 2),
        "values": ("float64", d.floats(0, 100), [1, 2, 2, 3, NAN, NAN, 0, -1, INF, 5, 5, 5]),
        "kind": ("str", d.of(["x", "y"]), ["x", "y", "z", None, "", "x"] * 2),
        "rows": ("int64", d.ints(1, 4), [1, 2, 3] * 4),
        "first name": ("str", d.of(["Ann", "Bob"]), ["Ann", None, "", " Bob", "é", "X"] * 2),
        "a.b": ("float64", d.floats(-1, 1), [0, -0.0, NAN, 1, -1, 0.5, INF, -INF, 2, 3, 4, 5]),
        "i8": ("int8", d.ints(-128, 128), [-128, 127, 0, 1, -1, 100, 64, -64, 2, 3, 4, 5]),
        "u8": ("uint8", d.ints(0, 256), [0, 255, 1, 128, 127, 200, 2, 3, 4, 5, 6, 7]),
        "i16": ("int16", d.ints(-300, 300), [-32768, 32767, 0, 1, -1, 5, 6, 7, 8, 9, 10, 11]),
        "u32": ("uint32", d.ints(0, 10**6), [0, 2**32 - 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        "big": (
            "int64",
            [2**53 + i for i in d.ints(0, 9)],
            [2**53 + 1, 2**62, -(2**62), INT64.max, INT64.min, 0, 1, -1, 2**53, 2**53 + 1, 3, 4],
        ),
        "f32": ("float32", d.floats(-3, 3, 3, 0.1), [0.1, 0.2, NAN, INF, -INF, 1e38, 1e-40, 16777217, -0.0, 0, 0.5, 3]),
        "gone": ("float64", [NAN] * ROWS, [NAN] * EDGES),
        "flag": ("bool", d.bools(), [True, False, False] * 4),
        "maybe": ("boolean", d.bools(0.2), [None, True, False] * 4),
        "whole": ("Int64", d.of([1, 2, 3], 0.2), [None, 1, 2, 3, -1, None, 0, 5, 7, 2**53 + 1, 1, 1]),
        "part": ("Float64", d.of([0.5, 1.5, -2.25], 0.2), [None, 0.5, 1.5, 2.5, -1, None, 0, 5, INF, 1e300, 1, 1]),
        "word": ("string", d.of(["up", "down", "Up"], 0.2), TEXTS),
        "sec": ("datetime64[s]", d.times("1950-01-01", "2050-01-01", 0.1), OLD_TIMES),
        "nano": ("datetime64[ns]", d.times("1950-01-01", "2050-01-01", 0.1), OLD_TIMES),
        "level": ("low<mid<high", d.of(["low", "mid", "high"], 0.1), ["low", None, "mid", "high"] * 3),
        "shade": ("red|green|blue", d.of(["red", "green"], 0.1), ["red", None, "blue", "green"] * 3),
    }


FRAMES: dict[str, Callable[[], Columns]] = {
    make.__name__: make for make in (loans, customers, orders, sensors, logs, titanic, houses, odds)
}


def series(dtype: str, values: Sequence[Any]) -> pd.Series:
    """A column; `a|b` are categories, `a<b` ordered ones."""
    for mark in "|<":
        if mark in dtype:
            return pd.Series(list(values), dtype=pd.CategoricalDtype(dtype.split(mark), ordered=mark == "<"))
    if dtype.startswith("datetime"):
        return pd.Series([pd.NaT if v is None else pd.Timestamp(v) for v in values], dtype=dtype)
    return pd.Series(list(values), dtype=dtype)


@cache
def _pandas(name: str, variant: str) -> pd.DataFrame:
    edge = variant == "edge"
    data = {
        column: series(dtype, edges if edge else sample) for column, (dtype, sample, edges) in FRAMES[name]().items()
    }
    frame = pd.DataFrame(data)
    assert len(frame) == (EDGES if edge else ROWS)
    return {"one": frame.iloc[3:4], "none": frame.iloc[:0]}.get(variant, frame).reset_index(drop=True)


def pandas_frame(name: str, variant: str) -> pd.DataFrame:
    """A frame of pandas, which its user may change."""
    return _pandas(name, variant).copy()


@cache
def polars_frame(name: str, variant: str) -> pl.DataFrame:
    """The same as a frame of Polars: missing values are null, and edge cases have NaN beside; categories are an Enum.

    `date` is the date of the first time.
    """
    frame = pandas_frame(name, variant)
    enums = {
        c: pl.Enum(list(frame[c].cat.categories)) for c in frame if isinstance(frame[c].dtype, pd.CategoricalDtype)
    }
    found = pl.from_pandas(frame).cast(enums)  # type: ignore[arg-type]
    if variant == "edge":
        numbers = pl.col(pl.Float64, pl.Float32)
        found = found.with_columns(pl.when(pl.int_range(pl.len()) == 4).then(NAN).otherwise(numbers).name.keep())
        found = found.cast({c: pl.Float32 for c in frame if frame[c].dtype == "float32"})
    moments = [c for c in frame if str(frame[c].dtype) == TIME]
    return found.with_columns(date=pl.col(moments[0]).dt.date()) if moments else found
