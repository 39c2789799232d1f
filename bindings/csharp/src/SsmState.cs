// SPDX-License-Identifier: Apache-2.0
// The state of recurrent layers.
using System;

namespace LibGenerate
{
    /// <summary>The state of recurrent layers: a session's, or your own for sequences in step. One thread at a time.</summary>
    public sealed class SsmState : NativeObject
    {
        /// <summary>Zeros: [batch, innerSize, stateSize] for each layer.</summary>
        public SsmState(int layers, int innerSize, int stateSize, int batch = 1)
            : base(Make(layers, innerSize, stateSize, batch))
        {
        }

        internal SsmState(IntPtr state, Handle owner)
            : base(new Handle(owner, HandleKind.SsmState, state))
        {
        }

        static Handle Make(int layers, int innerSize, int stateSize, int batch)
        {
            Loader.Ensure();
            IntPtr state;
            if (batch == 1)
            {
                Native.gen_ssm_state_new(layers, innerSize, stateSize, out state);
            }
            else
            {
                Native.gen_ssm_state_new_batch(layers, batch, innerSize, stateSize, out state);
            }
            return new Handle(HandleKind.SsmState, state);
        }

        /// <summary>Number of layers.</summary>
        public int Layers
        {
            get { return Native.gen_ssm_state_num_layers(Handle); }
        }

        /// <summary>Number of tokens that a session's state is after; 0 for one of your own. Also while a call runs.</summary>
        public int Position
        {
            get { return Native.gen_ssm_state_position(Handle); }
        }

        /// <summary>What a layer is, such as "delta net"; null if there is no such layer.</summary>
        public string LayerKind(int layer)
        {
            return Utf8.Text(Native.gen_ssm_state_layer_kind(Handle, layer));
        }

        /// <summary>The layer of the model that a layer of the state belongs to; -1 if there is no such layer.</summary>
        public int LayerIndex(int layer)
        {
            return Native.gen_ssm_state_layer_index(Handle, layer);
        }

        /// <summary>The three sizes of a layer; batch, inner size and state size of your own.</summary>
        public int[] Shape(int layer)
        {
            var shape = new int[3];
            Native.gen_ssm_state_get_layer(Handle, layer, null, 0, shape);
            return shape;
        }

        /// <summary>A copy of a layer's state.</summary>
        public float[] GetLayer(int layer)
        {
            var shape = new int[3];
            Native.gen_ssm_state_get_layer(Handle, layer, null, 0, shape);
            var values = new float[KvCache.Size(shape)];
            Native.gen_ssm_state_get_layer(Handle, layer, values, values.Length, shape);
            return values;
        }

        /// <summary>Replaces a layer's state, but not of a session.</summary>
        public void SetLayer(int layer, float[] values)
        {
            if (values == null) throw new ArgumentNullException("values");
            int[] shape = Shape(layer);
            if (values.Length != KvCache.Size(shape)) throw new ArgumentException("of another size than the layer", "values");
            Native.gen_ssm_state_set_layer(Handle, layer, values, shape[0], shape[1], shape[2]);
        }

        /// <summary>Keeps a copy of all layers: its number. The last 16 are kept.</summary>
        public long Snapshot()
        {
            long snapshot;
            Native.gen_ssm_state_snapshot(Handle, out snapshot);
            return snapshot;
        }

        /// <summary>Makes the state that of a snapshot. A session then holds again what it held when it was taken.</summary>
        public void Restore(long snapshot)
        {
            Native.gen_ssm_state_restore(Handle, snapshot);
        }

        /// <summary>Zeros again; a session has its own Reset.</summary>
        public void Reset()
        {
            Native.gen_ssm_state_reset(Handle);
        }

        /// <summary>Bytes of the state; 0 for a custom model.</summary>
        public long MemoryBytes
        {
            get { return Native.gen_ssm_state_memory_bytes(Handle); }
        }
    }
}
