#include "sweep.h"
const scenario custom_scenarios[] = {{0}};
