#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools of examples/market: what each returns, which arguments they refuse, and that orders are approved, numbered and
executed.

usage: market_test.py <market> <source root>
"""
import json
import subprocess
import sys

ORDER = {"symbol": "ACME", "side": "buy", "quantity": 2, "price": 49.5}


def run(*calls):
    """The lines that a program with these calls prints."""
    lines = "".join(f"{name} {json.dumps(arguments)}\n" for name, arguments in calls)
    done = subprocess.run([sys.argv[1]], input=lines, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.splitlines()


def output(name, **arguments):
    result = json.loads(run((name, arguments))[-1])
    assert not result["is_error"], result
    return json.loads(result["output"])


def failure(name, **arguments):
    result = json.loads(run((name, arguments))[-1])
    assert result["is_error"], result
    return result["output"]


data = output("GetMarketData", symbol="ACME")
assert sorted(data) == ["ask", "bid", "price", "symbol", "timestamp", "volume"] and isinstance(data["volume"], int)
assert failure("GetMarketData", symbol="NONE") == "no such symbol"
for depth, rows in (({}, 5), ({"depth": 2}, 2), ({"depth": 0}, 5), ({"depth": -3}, 5)):
    book = output("GetOrderBook", symbol="ACME", **depth)
    assert len(book["bids"]) == len(book["asks"]) == rows, book
    assert sorted(book["bids"][0]) == ["price", "quantity"]
account = output("GetPortfolio", account_id='my \\ "account"'.replace('"', "").replace("\\", "/"))
assert account["account_id"] == "my / account" and account["positions"][0]["avg_cost"] == 41
assert output("GetEarningsCalendar", start_date="2026-12-01", end_date="2026-12-31")[0]["symbol"] == "ACME"
assert output("GetEarningsCalendar", start_date="2027-01-01", end_date="2027-12-31") == []
assert len(output("SearchNews", query="ACME")) == 2 and len(output("SearchNews", query="ACME", limit=1)) == 1

# Every required argument, by its name.
for name, arguments in (("GetMarketData", {"symbol": "A"}), ("GetOrderBook", {"symbol": "A"}),
                        ("GetPortfolio", {"account_id": "A"}), ("SearchNews", {"query": "A"}),
                        ("GetEarningsCalendar", {"start_date": "A", "end_date": "B"}), ("SubmitOrder", ORDER)):
    for missing in arguments:
        rest = {key: value for key, value in arguments.items() if key != missing}
        assert f'"{missing}" is missing' in failure(name, **rest)
for key, value in (("side", "hold"), ("quantity", 0), ("quantity", -1), ("price", 0), ("price", "5"), ("symbol", "")):
    assert f'member "{key}"' in failure("SubmitOrder", **{**ORDER, key: value}), key

# Rejected orders have numbers, too; only approved ones are executed.
lines = run(("SubmitOrder", ORDER), ("SubmitOrder", {**ORDER, "quantity": 100}), ("SubmitOrder", {**ORDER, "side": "sell"}))
assert lines[0] == "executed ORD-000001: buy 2 ACME at 49.5", lines
assert json.loads(json.loads(lines[1])["output"]) == {"order_id": "ORD-000001", "status": "submitted", "approved": True}
assert json.loads(json.loads(lines[2])["output"]) == {"order_id": "ORD-000002", "status": "rejected", "approved": False,
                                                      "message": "above the limit of 1000"}
assert lines[3] == "executed ORD-000003: sell 2 ACME at 49.5" and len(lines) == 5
print("6 tools")
