/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files share that read and write the JSON of an image store. */
#ifndef TCI_BACKEND_OCI_IMAGE_JSON_H
#define TCI_BACKEND_OCI_IMAGE_JSON_H

#include <jansson.h>
#include "backend/oci/image.h"
#include "json/write.h"

#define TCI_IMAGE_MEDIA_MANIFEST "application/vnd.oci.image.manifest.v1+json"

void tci_image_json_freep(json_t **json);
/* An error: "index.json of the image store is not as toolcage writes it". */
int tci_image_strange(const char *what, struct tc_error *reterr);
/* A member that is a text; "" if it is none. */
const char *tci_image_text_of(const json_t *object, const char *key);
/* {"mediaType": "...", "digest": "sha256:...", "size": N} of this type, and with a digest that is one. */
bool tci_image_read_descriptor(const json_t *json, const char *media_type, struct tci_blob *ret);
void tci_image_write_descriptor(struct tci_json *json, const char *media_type,
                                const struct tci_blob *blob);

#endif
