// SPDX-License-Identifier: Apache-2.0

package tests

// play is what this program does in the place of tests when it runs itself: see TestExit.
func play(scene string) {}
