#pragma once

long in_program(long times);
long in_library(long times);
long in_loaded(long times);
