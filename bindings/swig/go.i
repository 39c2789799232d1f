// SPDX-License-Identifier: Apache-2.0
// Typemaps of the rules in generate.i for go.
