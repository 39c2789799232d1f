#include "sweep.h"
const scenario batch_scenarios[] = {{0}};
