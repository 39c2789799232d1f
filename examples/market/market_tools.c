/* SPDX-License-Identifier: Apache-2.0 */
/* See market_tools.h. The library has checked arguments against the schemas before a function here
 * sees them, so they are read by a few lines, not by a parser of JSON. */
#include "market_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512 };

static int fail(gen_tool_reply* reply, const char* message) {
  gen_tool_reply_write(reply, message, GEN_NUL_TERMINATED, NULL);
  return 1;
}

/* --- reading a flat JSON object */

static const char* skip_space(const char* at) { return at + strspn(at, " \t\r\n"); }

/* Behind the string that begins at its quotation mark. */
static const char* skip_string(const char* at) {
  for (++at; *at != '\0' && *at != '"'; ++at) {
    if (*at == '\\' && at[1] != '\0') ++at;
  }
  return *at == '"' ? at + 1 : at;
}

/* The value of a member; NULL if there is none. */
static const char* member(const char* object, const char* name) {
  const size_t length = strlen(name);
  const char* at = skip_space(object);
  if (*at != '{') return NULL;
  at = skip_space(at + 1);
  while (*at == '"') {
    const char* const key = at + 1;
    at = skip_string(at);
    const int found = (size_t)(at - key) == length + 1 && memcmp(key, name, length) == 0;
    at = skip_space(skip_space(at) + 1);
    if (found) return at;
    at = *at == '"' ? skip_string(at) : at + strcspn(at, ",}");
    at = skip_space(at);
    if (*at == ',') at = skip_space(at + 1);
  }
  return NULL;
}

/* Text with its escapes of one character; -1 for a missing one and for other escapes. */
static int text_member(const char* object, const char* name, char out[TEXT]) {
  const char* at = member(object, name);
  size_t n = 0;
  if (at == NULL || *at != '"') return -1;
  for (++at; *at != '\0' && *at != '"'; ++at) {
    if (n + 1 == TEXT) return -1;
    if (*at == '\\' && strchr("\"\\/", *++at) == NULL) return -1;
    out[n++] = *at;
  }
  out[n] = '\0';
  return n > 0 ? 0 : -1;
}

static double number_member(const char* object, const char* name) {
  const char* const at = member(object, name);
  return at != NULL && *at != '"' ? strtod(at, NULL) : 0;
}

/* `instead` for a number that is missing, or 0 or less. */
static int count_member(const char* object, const char* name, int instead) {
  const double value = number_member(object, name);
  return value >= 1 && value < 1e6 ? (int)value : instead;
}

/* --- the tools */

static int market_data(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  const market_tools* tools = user;
  char symbol[TEXT];
  if (text_member(call->arguments, "symbol", symbol)) return fail(reply, "symbol is missing or invalid");
  return tools->provider.market_data(tools->provider.user, symbol, reply);
}

static int order_book(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  const market_tools* tools = user;
  char symbol[TEXT];
  if (text_member(call->arguments, "symbol", symbol)) return fail(reply, "symbol is missing or invalid");
  return tools->provider.order_book(tools->provider.user, symbol,
                                    count_member(call->arguments, "depth", 5), reply);
}

static int portfolio(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  const market_tools* tools = user;
  char account[TEXT];
  if (text_member(call->arguments, "account_id", account)) {
    return fail(reply, "account_id is missing or invalid");
  }
  return tools->provider.portfolio(tools->provider.user, account, reply);
}

static int earnings(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  const market_tools* tools = user;
  char start[TEXT], end[TEXT];
  if (text_member(call->arguments, "start_date", start)) {
    return fail(reply, "start_date is missing or invalid");
  }
  if (text_member(call->arguments, "end_date", end)) return fail(reply, "end_date is missing or invalid");
  return tools->provider.earnings(tools->provider.user, start, end, reply);
}

static int news(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  const market_tools* tools = user;
  char query[TEXT];
  if (text_member(call->arguments, "query", query)) return fail(reply, "query is missing or invalid");
  return tools->provider.news(tools->provider.user, query,
                              count_member(call->arguments, "limit", 10), reply);
}

static int submit_order(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  market_tools* tools = user;
  char symbol[TEXT], side[TEXT];
  char reason[MARKET_MESSAGE] = "";
  char line[2 * MARKET_MESSAGE];
  int approved = 0;
  market_order order = {.symbol = symbol, .side = side};
  order.quantity = number_member(call->arguments, "quantity");
  order.price = number_member(call->arguments, "price");
  if (text_member(call->arguments, "symbol", symbol)) return fail(reply, "symbol is missing or invalid");
  if (text_member(call->arguments, "side", side) ||
      (strcmp(side, "buy") != 0 && strcmp(side, "sell") != 0)) {
    return fail(reply, "side is neither buy nor sell");
  }
  if (!(order.quantity > 0)) return fail(reply, "quantity is not above 0");
  if (!(order.price > 0)) return fail(reply, "price is not above 0");
  /* Rejected orders have a number, too. */
  const unsigned number = __atomic_add_fetch(&tools->last_order, 1, __ATOMIC_RELAXED);
  snprintf(order.id, sizeof order.id, "ORD-%06u", number);
  if (tools->approve(tools->user, &order, &approved, reason) != 0) return fail(reply, reason);
  if (approved && tools->execute != NULL && tools->execute(tools->user, &order, reason) != 0) {
    return fail(reply, reason);
  }
  /* Reasons are the program's own texts, without quotation marks. */
  snprintf(line, sizeof line, "{\"order_id\":\"%s\",\"status\":\"%s\",%s%s%s\"approved\":%s}", order.id,
           approved ? "submitted" : "rejected", approved ? "" : "\"message\":\"", approved ? "" : reason,
           approved ? "" : "\",", approved ? "true" : "false");
  return gen_tool_reply_write(reply, line, GEN_NUL_TERMINATED, NULL) == GEN_OK ? 0 : 1;
}

#define TEXT_MEMBER(name) "\"" name "\": {\"type\": \"string\", \"minLength\": 1}"

gen_status market_tools_add(market_tools* tools, gen_tool_registry* registry, gen_error* error) {
  static const struct {
    const char *name, *description, *schema;
    gen_tool_callback run;
  } all[] = {
      {"GetMarketData", "Price, bid, ask and volume of a symbol.",
       "{\"type\": \"object\", \"properties\": {" TEXT_MEMBER("symbol") "}, \"required\": [\"symbol\"]}",
       market_data},
      {"GetOrderBook", "The best bids and asks of a symbol.",
       "{\"type\": \"object\", \"properties\": {" TEXT_MEMBER("symbol")
       ", \"depth\": {\"type\": \"integer\"}}, \"required\": [\"symbol\"]}",
       order_book},
      {"GetPortfolio", "Cash and positions of an account.",
       "{\"type\": \"object\", \"properties\": {" TEXT_MEMBER("account_id")
       "}, \"required\": [\"account_id\"]}",
       portfolio},
      {"GetEarningsCalendar", "Who reports earnings between two dates.",
       "{\"type\": \"object\", \"properties\": {" TEXT_MEMBER("start_date") ", " TEXT_MEMBER("end_date")
       "}, \"required\": [\"start_date\", \"end_date\"]}",
       earnings},
      {"SearchNews", "News about a subject.",
       "{\"type\": \"object\", \"properties\": {" TEXT_MEMBER("query")
       ", \"limit\": {\"type\": \"integer\"}}, \"required\": [\"query\"]}",
       news},
      {"SubmitOrder", "Buys or sells. The risk department may reject it.",
       "{\"type\": \"object\", \"properties\": {" TEXT_MEMBER("symbol")
       ", \"side\": {\"enum\": [\"buy\", \"sell\"]}"
       ", \"quantity\": {\"type\": \"number\", \"exclusiveMinimum\": 0}"
       ", \"price\": {\"type\": \"number\", \"exclusiveMinimum\": 0}}"
       ", \"required\": [\"symbol\", \"side\", \"quantity\", \"price\"]}",
       submit_order},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    const gen_status status = gen_tool_registry_add(registry, all[i].name, all[i].description,
                                                    all[i].schema, all[i].run, tools, error);
    if (status != GEN_OK) return status;
  }
  return GEN_OK;
}
