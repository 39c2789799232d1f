/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools for a market: six functions that a model may call, over a table of functions that know the
 * market (market_provider), one that decides about orders (risk_approver) and one that carries out
 * what was approved (order_executor). Copy it and replace what you need.
 */
#ifndef MARKET_TOOLS_H
#define MARKET_TOOLS_H

#include <generate/generate.h>

enum { MARKET_MESSAGE = 256 };

/* Each function writes JSON to `reply` and returns 0, or writes why it failed and returns another
 * number. They are called on the threads of the agents. */
typedef struct market_provider {
  void* user;
  /* {"symbol":…,"price":…,"bid":…,"ask":…,"volume":…,"timestamp":…} */
  int (*market_data)(void* user, const char* symbol, gen_tool_reply* reply);
  /* {"symbol":…,"bids":[{"price":…,"quantity":…},…],"asks":[…]} */
  int (*order_book)(void* user, const char* symbol, int depth, gen_tool_reply* reply);
  /* {"account_id":…,"cash":…,"positions":[{"symbol":…,"quantity":…,"avg_cost":…,"current":…},…]} */
  int (*portfolio)(void* user, const char* account_id, gen_tool_reply* reply);
  /* [{"symbol":…,"date":…,"estimated_eps":…},…] */
  int (*earnings)(void* user, const char* start_date, const char* end_date, gen_tool_reply* reply);
  /* [{"title":…,"source":…,"url":…,"summary":…,"published":…},…] */
  int (*news)(void* user, const char* query, int limit, gen_tool_reply* reply);
} market_provider;

typedef struct market_order {
  char id[32]; /* ORD-000001, … */
  const char* symbol;
  const char* side; /* "buy" or "sell" */
  double quantity;  /* above 0 */
  double price;     /* above 0 */
} market_order;

/* Decides about an order: *approved, and the reason if not. Another number than 0 is a failure of
 * the tool, with the reason as its message. */
typedef int (*risk_approver)(void* user, const market_order* order, int* approved,
                             char reason[MARKET_MESSAGE]);
/* Carries out an approved order. Another number than 0: it was not, and the reason says why. */
typedef int (*order_executor)(void* user, const market_order* order, char reason[MARKET_MESSAGE]);

typedef struct market_tools {
  market_provider provider;
  risk_approver approve;
  order_executor execute; /* NULL: approved orders are only reported */
  void* user;             /* of both */
  unsigned last_order;    /* number of the last order; begin with 0 */
} market_tools;

/*
 * Adds GetMarketData, GetOrderBook, GetPortfolio, GetEarningsCalendar, SearchNews and SubmitOrder.
 * Stops at the first failure. `tools` must live as long as the registry and its agents.
 */
gen_status market_tools_add(market_tools* tools, gen_tool_registry* registry, gen_error* error);

#endif
