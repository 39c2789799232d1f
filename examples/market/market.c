/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with the tools of a market: market MODEL.gguf "Buy ten ACME if it is below 50."
 * Without a model the lines of standard input are calls, such as
 *   GetMarketData {"symbol": "ACME"}
 * and their results are printed. The market here is made up.
 */
#include <stdio.h>
#include <string.h>

#include "market_tools.h"

static int reply_text(gen_tool_reply* reply, const char* text) {
  return gen_tool_reply_write(reply, text, GEN_NUL_TERMINATED, NULL) == GEN_OK ? 0 : 1;
}

/* --- a market with one symbol */

static int market_data(void* user, const char* symbol, gen_tool_reply* reply) {
  (void)user;
  if (strcmp(symbol, "ACME") != 0) {
    reply_text(reply, "no such symbol");
    return 1;
  }
  return reply_text(reply, "{\"symbol\":\"ACME\",\"price\":49.5,\"bid\":49.4,\"ask\":49.6,"
                           "\"volume\":120000,\"timestamp\":\"2026-11-30T09:30:00Z\"}");
}

static int order_book(void* user, const char* symbol, int depth, gen_tool_reply* reply) {
  (void)user;
  char line[128];
  snprintf(line, sizeof line, "{\"symbol\":\"%.20s\",\"bids\":[", symbol);
  reply_text(reply, line);
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < depth; ++i) {
      snprintf(line, sizeof line, "%s{\"price\":%.1f,\"quantity\":%d}", i > 0 ? "," : "",
               side == 0 ? 49.4 - 0.1 * i : 49.6 + 0.1 * i, 100 * (i + 1));
      reply_text(reply, line);
    }
    reply_text(reply, side == 0 ? "],\"asks\":[" : "]}");
  }
  return 0;
}

static int portfolio(void* user, const char* account_id, gen_tool_reply* reply) {
  (void)user;
  char line[256];
  snprintf(line, sizeof line,
           "{\"account_id\":\"%.40s\",\"cash\":1000.0,\"positions\":[{\"symbol\":\"ACME\","
           "\"quantity\":3,\"avg_cost\":41.0,\"current\":49.5}]}",
           account_id);
  return reply_text(reply, line);
}

static int earnings(void* user, const char* start_date, const char* end_date, gen_tool_reply* reply) {
  (void)user;
  const char* const date = "2026-12-10";
  const int within = strcmp(start_date, date) <= 0 && strcmp(date, end_date) <= 0;
  return reply_text(reply, within ? "[{\"symbol\":\"ACME\",\"date\":\"2026-12-10\",\"estimated_eps\":1.2}]"
                                  : "[]");
}

static int news(void* user, const char* query, int limit, gen_tool_reply* reply) {
  (void)user;
  (void)query;
  reply_text(reply, "[");
  for (int i = 0; i < limit && i < 2; ++i) {
    reply_text(reply, i > 0 ? "," : "");
    reply_text(reply, "{\"title\":\"ACME opens a factory\",\"source\":\"wire\",\"url\":\"\","
                      "\"summary\":\"\",\"published\":\"2026-11-29\"}");
  }
  return reply_text(reply, "]");
}

/* No order above 1000 in all. */
static int approve(void* user, const market_order* order, int* approved, char reason[MARKET_MESSAGE]) {
  (void)user;
  *approved = order->quantity * order->price <= 1000;
  if (!*approved) snprintf(reason, MARKET_MESSAGE, "above the limit of 1000");
  return 0;
}

static int execute(void* user, const market_order* order, char reason[MARKET_MESSAGE]) {
  (void)user;
  (void)reason;
  printf("executed %s: %s %g %s at %g\n", order->id, order->side, order->quantity, order->symbol,
         order->price);
  return 0;
}

/* --- the program */

static int show(void* user, const gen_agent_event* event) {
  (void)user;
  if (event->kind == GEN_AGENT_TEXT) fwrite(event->text, 1, event->len, stdout);
  if (event->kind == GEN_AGENT_TOOL_BEGAN) printf("\n[%s %s]\n", event->name, event->text);
  fflush(stdout);
  return 0;
}

static int run_model(const char* path, const char* task, gen_tool_registry* registry) {
  gen_error error;
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_agent* agent = NULL;
  gen_status status = gen_model_load(path, NULL, &model, &error);
  if (status == GEN_OK) status = gen_create(model, NULL, &generator, &error);
  if (status == GEN_OK) status = gen_agent_new(generator, registry, NULL, &agent, &error);
  if (status == GEN_OK) {
    status = gen_agent_run(agent, task, GEN_NUL_TERMINATED, show, NULL, NULL, &error);
  }
  printf("\n");
  if (status != GEN_OK) fprintf(stderr, "%s\n", error.message);
  gen_agent_free(agent);
  gen_free(generator);
  gen_model_free(model);
  return status == GEN_OK ? 0 : 1;
}

static int run_lines(gen_tool_registry* registry) {
  static char line[4096], result[65536];
  gen_error error;
  size_t n = 0;
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char* arguments = strchr(line, ' ');
    if (arguments != NULL) *arguments++ = '\0';
    if (gen_tool_registry_call(registry, "", line, arguments != NULL ? arguments : "", GEN_NUL_TERMINATED,
                               result, sizeof result, &n, &error) != GEN_OK) {
      fprintf(stderr, "%s\n", error.message);
      return 1;
    }
    printf("%s\n", result);
  }
  return 0;
}

int main(int argc, char** argv) {
  market_tools tools = {
      .provider = {NULL, market_data, order_book, portfolio, earnings, news},
      .approve = approve,
      .execute = execute,
  };
  gen_error error;
  gen_tool_registry* registry = NULL;
  if (gen_tool_registry_new(&registry, &error) != GEN_OK ||
      market_tools_add(&tools, registry, &error) != GEN_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  const int status = argc > 2 ? run_model(argv[1], argv[2], registry) : run_lines(registry);
  gen_tool_registry_free(registry);
  return status;
}
