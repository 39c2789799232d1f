#include "sweep.h"
const scenario many_scenarios[] = {{0}};
