// SPDX-License-Identifier: Apache-2.0
// The handles of tokenizers and templates.
#pragma once

#include <memory>

#include "template/request.h"
#include "tokenizer/tokenizer.h"
#include <generate/base.h>

struct gen_tokenizer {
  std::shared_ptr<const gen::tokenizer::Tokenizer> impl;
};

struct gen_template {
  std::shared_ptr<const gen::templates::Template> impl;
  gen::templates::RequestDefaults defaults;
};
