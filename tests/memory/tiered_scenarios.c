#include "sweep.h"
const scenario tiered_scenarios[] = {{0}};
