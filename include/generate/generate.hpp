// SPDX-License-Identifier: Apache-2.0
// The C API as C++17 classes: handles that free themselves, failures as exceptions, pieces in a
// range-for. Header only; a program that uses it links the same library. Every class returns its
// handle with get(), for functions that have no method here.
//
//   gen::Model model("model.gguf");
//   gen::Generator generator(model);
//   gen::Session session(generator);
//   for (const gen::Token& token : session.stream("Once upon a time", gen::Sampling().temperature(0.8)))
//     std::cout << token.text << std::flush;
//
// Threads: as for the handles in generate.h. Moved-from objects hold NULL, which functions refuse
// as an argument.
#ifndef GENERATE_GENERATE_HPP
#define GENERATE_GENERATE_HPP

#include "agent.hpp"
#include "generator.hpp"
#include "grammar.hpp"
#include "handle.hpp"
#include "kv_cache.hpp"
#include "model.hpp"
#include "result.hpp"
#include "sampling.hpp"
#include "session.hpp"
#include "speculative.hpp"

#endif  // GENERATE_GENERATE_HPP
