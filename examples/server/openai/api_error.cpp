// SPDX-License-Identifier: Apache-2.0
// See api_error.h.
#include "api_error.h"

#include <nlohmann/json.hpp>

namespace server {
namespace {

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

}  // namespace

ApiError bad_request(std::string param, const std::string& message, std::string code) {
  return {400, "invalid_request_error", std::move(code), std::move(param), message};
}

ApiError not_found(std::string param, const std::string& message, std::string code) {
  return {404, "invalid_request_error", std::move(code), std::move(param), message};
}

ApiError server_error(int status, const std::string& message, std::string code) {
  return {status, "server_error", std::move(code), {}, message};
}

nlohmann::ordered_json error_json(const ApiError& error) {
  nlohmann::ordered_json json;
  json["error"] = {{"message", error.what()},
                   {"type", error.type},
                   {"param", text_or_null(error.param)},
                   {"code", text_or_null(error.code)}};
  return json;
}

}  // namespace server
