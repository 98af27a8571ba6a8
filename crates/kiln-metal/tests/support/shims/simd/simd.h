/* For tests: nothing of Apple's header is used. */
#pragma once
