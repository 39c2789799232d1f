// SPDX-License-Identifier: Apache-2.0
// The answer to a request that fails: an HTTP status and the error object of the OpenAI API.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

namespace server {

struct ApiError : std::runtime_error {
  ApiError(int status_, std::string type_, std::string code_, std::string param_,
           const std::string& message)
      : std::runtime_error(message),
        status(status_),
        type(std::move(type_)),
        code(std::move(code_)),
        param(std::move(param_)) {}

  int status;         // of HTTP
  std::string type;   // "invalid_request_error" or "server_error"
  std::string code;   // "model_not_found" …; empty is null
  std::string param;  // the field of the request, "messages[2].role"; empty is null
};

/// 400: the field `param` is wrong.
ApiError bad_request(std::string param, const std::string& message, std::string code = {});
/// 404.
ApiError not_found(std::string param, const std::string& message, std::string code);
/// 500, 503: the request may be fine.
ApiError server_error(int status, const std::string& message, std::string code = {});

/// {"error":{"message","type","param","code"}}
nlohmann::ordered_json error_json(const ApiError& error);

}  // namespace server
