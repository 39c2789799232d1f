// SPDX-License-Identifier: Apache-2.0
// See hparams.h.
#include "model/hparams.h"

namespace gen::model {

Result<HParams> read_hparams(const gguf::Metadata& metadata, const ReadHParams& read) {
  HParams h;
  GEN_ASSIGN(h.architecture, metadata.get_string("general.architecture"));
  KeyReader keys(metadata, h.architecture);
  GEN_TRY(read(keys, &h));
  GEN_TRY(keys.refuse_unread());
  return h;
}

}  // namespace gen::model
