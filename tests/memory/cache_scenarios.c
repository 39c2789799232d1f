#include "sweep.h"
const scenario cache_scenarios[] = {{0}};
