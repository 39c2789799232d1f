// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of the public headers are. Each holds shared pointers to the rooms'
// objects, so freeing a handle never pulls anything away from under somebody else.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/thread_pool.h"
#include "generate/base.h"
#include "tokenizer/chat.h"
#include "tokenizer/tokenizer.h"

struct gen_thread_pool {
  std::shared_ptr<gen::ThreadPool> pool;
};

struct gen_cancel {
  gen::CancelFlag flag;
};

struct gen_tokenizer {
  std::shared_ptr<const gen::tokenizer::Tokenizer> impl;
};

struct gen_chat {
  std::vector<gen::tokenizer::ChatMessage> messages;
};
