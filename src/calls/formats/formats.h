// SPDX-License-Identifier: Apache-2.0
// The formats, one family a file; families that share all but words share a file.
#pragma once

#include "calls/call_format.h"

namespace gen::calls {

CallFormat apertus_format();
CallFormat apriel_format();
CallFormat command_r_format();
CallFormat command_r7b_format();
CallFormat deepseek_r1_format();
CallFormat deepseek_v31_format();
CallFormat deepseek_v32_format();
CallFormat deepseek_v4_format();
CallFormat firefunction_format();
CallFormat function_gemma_format();
CallFormat functionary_31_format();
CallFormat functionary_32_format();
CallFormat gemma4_format();
CallFormat generic_json_format();
CallFormat gigachat35_format();
CallFormat gigachat_format();
CallFormat glm_format();
CallFormat granite_format();
CallFormat harmony_format();
CallFormat hermes_format();
CallFormat kimi_format();
CallFormat kimi_k3_format();
CallFormat lfm2_format();
CallFormat llama3_format();
CallFormat minicpm5_format();
CallFormat minimax_m2_format();
CallFormat minimax_m3_format();
CallFormat mistral_format();
CallFormat mistral_id_format();
CallFormat mistral_list_format();
CallFormat muse_format();
CallFormat nemotron_nano2_format();
CallFormat olmo3_format();
CallFormat phi4_format();
CallFormat qwen_coder_format();
CallFormat seed_oss_format();

}  // namespace gen::calls
