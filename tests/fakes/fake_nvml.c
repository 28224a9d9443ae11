/* A libnvidia-ml.so.1 that is driven by a file: enough of NVML for the real pynvml to read GPU memory.
 *
 * FAKE_NVML_FILE names the file, read anew at every call and replaced by rename while in use. A line "init CODE" makes
 * nvmlInit fail with that code; each other line is a device:
 *     UUID total_bytes reserved_bytes used_bytes [error_code [old]]
 * "old": no memory information of version 2. A UUID "MIG-..." is the one instance of a device of its own.
 * Layouts and codes are those of nvml.h: in version 1 `used` includes what is reserved, in version 2 it does not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;
typedef struct device { int index, instance; } *device_t;
typedef struct { char uuid[80]; u64 total, reserved, used; int error; char old[8]; } row;
typedef struct { u64 total, free, used; } memory_v1;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2;

enum { MOST = 16, SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, MISMATCH = 25, UNKNOWN = 999 };

static struct device devices[MOST], instances[MOST];
static int users;

static int rows(row *out, int *init) {
  const char *path = getenv("FAKE_NVML_FILE");
  FILE *file = path ? fopen(path, "r") : NULL;
  char line[256];
  int count = 0;
  if (!file) return -1;
  while (count < MOST && fgets(line, sizeof line, file)) {
    row it = {0};
    if (sscanf(line, "init %d", init) == 1) continue;
    if (sscanf(line, "%79s %llu %llu %llu %d %7s", it.uuid, &it.total, &it.reserved, &it.used, &it.error, it.old) >= 4) out[count++] = it;
  }
  fclose(file);
  return count;
}

static int find(device_t device, row *out) {
  row all[MOST];
  int init = 0, count = rows(all, &init);
  if (!users) return UNINITIALIZED;
  if (count < 0) return UNKNOWN;
  if (!device || device->index >= count) return NOT_FOUND;
  *out = all[device->index];
  return out->error;
}

int nvmlInitWithFlags(unsigned flags) {
  row all[MOST];
  int init = 0;
  (void)flags;
  for (int i = 0; i < MOST; i++) devices[i] = (struct device){i, 0}, instances[i] = (struct device){i, 1};
  if (rows(all, &init) < 0) return UNKNOWN;
  if (!init) users++;
  return init;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return users ? (users--, SUCCESS) : UNINITIALIZED; }
const char *nvmlErrorString(int code) { static char text[32]; snprintf(text, sizeof text, "fake error %d", code); return text; }
int nvmlDeviceGetCount_v2(unsigned *count) {
  row all[MOST];
  int init = 0, found = rows(all, &init);
  if (!users) return UNINITIALIZED;
  if (found < 0) return UNKNOWN;
  *count = found;
  return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device) {
  unsigned count;
  int code = nvmlDeviceGetCount_v2(&count);
  if (code) return code;
  if (index >= count) return INVALID;
  *device = &devices[index];
  return SUCCESS;
}
static int is_mig(device_t device) {
  row it;
  int code = find(device, &it);
  return code != UNINITIALIZED && code != NOT_FOUND && !strncmp(it.uuid, "MIG-", 4);
}
int nvmlDeviceGetUUID(device_t device, char *text, unsigned length) {
  row it;
  int code = find(device, &it);
  if (code == UNINITIALIZED || code == NOT_FOUND) return code;
  snprintf(text, length, "%s%s", is_mig(device) && !device->instance ? "GPU-of-" : "", it.uuid);
  return SUCCESS;
}
int nvmlDeviceGetName(device_t device, char *text, unsigned length) { snprintf(text, length, "Fake %d", device->index); return SUCCESS; }
int nvmlDeviceGetMigMode(device_t device, unsigned *current, unsigned *pending) {
  if (!is_mig(device)) return NOT_SUPPORTED;
  *current = *pending = 1;
  return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *count) { (void)device; *count = 7; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *instance) {
  if (index != 2) return NOT_FOUND;
  *instance = &instances[device->index];
  return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(device_t device, memory_v1 *memory) {
  row it;
  int code = find(device, &it);
  if (code) return code;
  if (is_mig(device) && !device->instance) return 4; /* no permission for the whole of a split device */
  memory->total = it.total, memory->used = it.used + it.reserved, memory->free = it.total - memory->used;
  return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(device_t device, memory_v2 *memory) {
  row it;
  int code = find(device, &it);
  if (code) return code;
  if (it.old[0]) return MISMATCH;
  if (is_mig(device) && !device->instance) return 4;
  if (memory->version != (sizeof *memory | (2u << 24))) return MISMATCH;
  memory->total = it.total, memory->reserved = it.reserved, memory->used = it.used;
  memory->free = it.total - it.used - it.reserved;
  return SUCCESS;
}
