// SPDX-License-Identifier: Apache-2.0
// Filters that lay out texts: wrapped lines, values over several lines, links.
#pragma once

#include "template/builtin.h"

namespace gen::templates {

/// wordwrap(width, break_long_words, wrapstring, break_on_hyphens), as Python's textwrap.
Result<Value> word_wrap(const Call& call);
/// pprint, as Python's pprint.pformat: 80 columns, keys in order.
Result<Value> pretty_print(const Call& call);
/// urlize(trim_url_limit, nofollow, target, rel, extra_schemes).
Result<Value> make_links(const Call& call);

}  // namespace gen::templates
