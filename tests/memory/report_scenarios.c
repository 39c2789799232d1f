#include "sweep.h"
const scenario report_scenarios[] = {{0}};
